"""`reconciler demo`: plays a day of a simulated AKS cluster in a few seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from jobs.runtime.output import echo
from jobs.runtime.process import Observers, Passed, Surroundings, options_of_features
from jobs.runtime.story import IGNORES, WAITS, WARNS, Audit, Story
from reconciler.calendar.values import format_duration
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import State
from reconciler.report.document import to_report
from reconciler.report.text import as_text
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.simulation.clock import Actor, Happening
from reconciler.simulation.day import END, SETTINGS, START, ZONE, Chapter, build, chapters
from reconciler.simulation.world import World

EVERY = timedelta(minutes=1)
DEBOUNCE = timedelta(milliseconds=500)
"""How long after a change on a node a pass starts, as `serve` does."""

_STYLES = {
    "Azure": "magenta",
    WAITS: "yellow",
    WARNS: "red",
    "acts": "bold green",
    IGNORES: "green",
    "someone": "cyan",
    "cluster": "blue",
}
_KUBERNETES = {"node not ready": "is NotReady", "node ready": "is Ready again", "node joined": "joins"}


@click.command("demo")
@options_of_features("demo")
def command(given: Mapping[str, Any]) -> int:
    """Play a day of a simulated AKS cluster in seconds."""
    return run(given=given)


def run(console: Console | None = None, *, given: Mapping[str, Any] = MappingProxyType({})) -> int:
    """Run the demo and print it. Return the exit code: 1 if a budget was exceeded.

    `given` are the values of options of features; raises OutputError if one can't be followed.
    """
    demo = _Demo(console or Console(highlight=False, soft_wrap=True, emoji=False, markup=False))
    around = Surroundings("demo", given, partial(echo, err=True), now=lambda: demo.now)
    with demo.observers.add(around):
        return demo.run()


class _Demo:
    """The simulated world, its passes, and what is already printed."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._settings = parse_settings(SETTINGS, "demo.yaml")
        self._world = World(START.astimezone(UTC), on_progress=self._drain_moved)
        self._audit = Audit(self._world, self._settings)
        self._woken: datetime | None = None
        self._begun: dict[str, datetime] = {}
        self._phases: dict[str, Phase] = {}
        self._story = Story(self._settings, ZONE, START.date())
        self._printed: dict[str, tuple[object, ...]] = {}
        self._quiet: dict[str, datetime] = {}
        self._passes = self._drained = self._stopped = 0
        self.observers = Observers()
        self._world.history = self.observers

    @property
    def now(self) -> datetime:
        """The time in the day (UTC)."""
        return self._world.now

    def run(self) -> int:
        """Play the day from its first minute to its last."""
        build(self._world)
        self._introduce()
        self._world.log.listeners.append(self._heard)
        for chapter in chapters():
            self._world.clock.at(chapter.at.astimezone(UTC), self._opening(chapter))
        plan, outcomes = self._pass()
        while self._world.now < END:
            self._until_next_pass(plan.next_change)
            plan, outcomes = self._pass()
        return self._conclude(plan, outcomes)

    def _pass(self) -> tuple[Plan, tuple[Outcome, ...]]:
        self._woken = None
        self._passes += 1
        world = self._world
        plan, outcomes = run_pass(world.outside, self._settings, world.now)
        self.observers.after(Passed(plan, self._settings, outcomes, rehearsed=False))
        for node in plan.nodes:
            self._print_node(node)
        for quiet in set(self._printed) - {node.node for node in plan.nodes}:
            del self._printed[quiet]
        return plan, outcomes

    def _until_next_pass(self, next_change: datetime | None) -> None:
        """Advance the clock to the next minute, the next change of the plan, or shortly after a change."""
        clock = self._world.clock
        start = START.astimezone(UTC)
        target = start + ((clock.now() - start) // EVERY + 1) * EVERY
        if next_change is not None and clock.now() < next_change:
            target = min(target, next_change)
        while True:
            until = target if self._woken is None else min(target, self._woken + DEBOUNCE)
            moment = clock.next()
            if moment is None or moment > until:
                clock.advance(until)
                return
            clock.advance(moment)

    # What is printed.

    def _introduce(self) -> None:
        cluster = self._world.cluster
        pools = Counter(node.pool for node in cluster.nodes.values())
        sizes = ", ".join(f"{count} {pool}" for pool, count in pools.items())
        self._out.print(
            f"A simulated AKS cluster: {len(cluster.nodes)} nodes ({sizes}) in 3 zones, "
            f"{len(cluster.pods)} pods.\n"
            "Azure, Kubernetes and the clock are simulated. The code that decides and drains is real.\n"
            "Its settings:\n"
        )
        self._out.print(Text("".join(f"    {line}\n" for line in SETTINGS.splitlines()), style="dim"))
        self._out.print(f"{START:%A}, {START.day} {START:%B %Y}, {START:%H:%M} to midnight, Berlin time.")

    def _opening(self, chapter: Chapter) -> Callable[[], None]:
        def begin() -> None:
            self._heading(chapter.title)
            chapter.begin(self._world)

        return begin

    def _heading(self, title: str) -> None:
        self._out.print()
        self._out.print(Text(title, style="bold"))

    def _line(self, who: str, node: str, text: str) -> None:
        line = Text(f"{self._world.now.astimezone(ZONE):%H:%M:%S}  ", style="dim")
        line.append(f"{who:<9} ", style=f"not dim {_STYLES[who]}")
        line.append(f"{node:<30} " if node else "", style="not dim")
        line.append(text, style="not dim")
        self._out.print(line)

    def _heard(self, happening: Happening) -> None:
        node = happening.node
        match happening.actor:
            case Actor.PLATFORM:
                self._woken = self._world.now
                self._line("Azure", node, self._azure(happening))
            case Actor.SOMEBODY:
                self._line("someone", "", f"{happening.what} {happening.subject} to {happening.detail}")
            case Actor.CLUSTER if happening.what in _KUBERNETES:
                self._woken = self._world.now
                self._line("cluster", node, _KUBERNETES[happening.what])
            case _:
                pass

    def _azure(self, happening: Happening) -> str:
        kind, _, what = happening.what.partition(" ")
        match what:
            case "scheduled":
                reported = self._world.platform.reported(happening.node)
                event = next(one for one in reported if one.event_id == happening.subject)
                pause = f", a pause of {event.seconds} s" if event.seconds >= 0 else ""
                return f"announces: {kind}, not before {self._story.clock(event.not_before)}{pause}"
            case "started":
                return f"begins: {kind}"
            case "cancelled":
                return f"cancels: {kind}"
            case "over":
                return f"has finished: {kind}"
            case _:
                return "evicts the VM"

    def _print_node(self, plan: NodePlan) -> None:
        now, node = self._world.now, self._world.cluster.nodes.get(plan.node)
        labels = node.labels if node is not None else {}
        for step in plan.transitions:
            if step.after is State.IN_MAINTENANCE:
                self._begun[plan.node] = now
                why = self._story.start(plan, labels, now)
                self._line("acts", plan.node, f"cordons and drains: {why}")
            elif step.before is State.IN_MAINTENANCE:
                why = self._story.end(self._quiet.pop(plan.node, now))
                self._line("acts", plan.node, f"uncordons: {why}")
        if plan.record is not None and plan.record.quiet_since is not None:
            self._quiet[plan.node] = plan.record.quiet_since
        if plan.todo.stop_drain:
            self._stopped += 1
            self._line("acts", plan.node, "stops the drain: no event requires it any more")
        sentences = self._story.standing(plan, labels, now)
        keys = tuple(one.key for one in sentences)
        if keys != self._printed.get(plan.node, ()):
            for who in dict.fromkeys(one.who for one in sentences):
                self._line(who, plan.node, "; ".join(one.text for one in sentences if one.who == who))
        self._printed[plan.node] = keys

    def _drain_moved(self, progress: DrainProgress) -> None:
        if progress.phase is self._phases.get(progress.node):
            return
        self._phases[progress.node] = progress.phase
        if progress.phase is Phase.DRAINED:
            self._woken = self._world.now
            self._drained += 1
            took = format_duration(self._world.now - self._begun[progress.node])
            self._line("acts", progress.node, f"drained it in {took}: {progress.evicted} pods evicted")

    def _conclude(self, plan: Plan, outcomes: Iterable[Outcome]) -> int:
        self._heading("The report at midnight, with times in UTC")
        self._out.print()
        self._out.print(Text(as_text(to_report(plan, outcomes, rehearsed=False)).rstrip()))
        self._heading("The day in numbers")
        for label, text in _summary(self._audit, self._drained, self._stopped, self._passes):
            self._out.print(f"{label:<9}{text}")
        for violation in self._audit.violations:
            self._out.print(Text(f"WRONG: {violation}", style="red"))
        return 1 if self._audit.violations else 0


def _summary(audit: Audit, drained: int, stopped: int, passes: int) -> Iterator[tuple[str, str]]:
    events = ", ".join(f"{count} {kind}" for kind, count in audit.events.items())
    yield "events", f"{sum(audit.events.values())}: {events}; {audit.cancelled} cancelled"
    nodes = f"{audit.cordons} cordoned, {drained} of them drained, {stopped} drains stopped"
    yield "nodes", f"{nodes}; {audit.uncordons} uncordoned"
    yield "pods", f"{audit.evictions} evicted; PodDisruptionBudgets refused {audit.refusals} evictions"
    word = "EXCEEDED" if audit.violations else "never exceeded, checked at every cordon and every eviction"
    most = f"at most {audit.most_out} out of service at once, {audit.most_out_in_a_zone} in a zone"
    yield "budgets", f"{word}; {most}"
    yield "passes", f"{passes}: one per minute, and one after each change"
