"""`reconciler demo`: plays a day of a simulated AKS cluster in a few seconds, and tells it.

It ends with an audit of what the day has done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import click
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from jobs.commands import in_own_words
from jobs.runtime.output import echo, width
from jobs.runtime.process import Observers, Passed, Surroundings, options_of_features
from reconciler.calendar.values import format_duration, in_zone
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.holds import DRAIN_BLOCKED
from reconciler.model.limits import count_of
from reconciler.model.node import Node
from reconciler.model.outcome import CORDON, UNCORDON, Outcome
from reconciler.model.plan import Hold, JudgedEvent, NodePlan, Plan
from reconciler.model.record import State
from reconciler.profiles.checks.platform import events_gone, node_ready
from reconciler.profiles.checks.starts import start_planned, window_open
from reconciler.report.document import to_report
from reconciler.report.lines import folded
from reconciler.report.text import as_text
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.settings.policies import OutsideWindow
from reconciler.settings.schema import Settings
from reconciler.simulation.clock import Actor, Happening
from reconciler.simulation.day import END, SETTINGS, START, ZONE, Chapter, build, chapters
from reconciler.simulation.world import World


class Audit:
    """Listens to a world's log.

    `violations` are sentences; there should never be one. The audit checks that pods are evicted only from
    cordoned nodes, that our cordons never exceed the budget (except for exempt kinds that are due), and that
    no eviction takes a PodDisruptionBudget below the healthy pods that it requires.
    """

    def __init__(self, world: World, settings: Settings) -> None:
        self._world = world
        self._settings = settings
        self._budget = settings.budget
        self.violations: list[str] = []
        self.events: Counter[str] = Counter()
        self.cancelled = 0
        self.cordons = 0
        self.uncordons = 0
        self.evictions = 0
        self.refusals = 0
        self.most_out = 0
        self.most_out_in_a_zone = 0
        world.log.listeners.append(self.heard)

    def heard(self, happening: Happening) -> None:
        """Count and check one happening."""
        match happening.actor, happening.what:
            case Actor.PLATFORM, what if what.endswith(" scheduled"):
                self.events[what.removesuffix(" scheduled")] += 1
            case Actor.PLATFORM, what if what.endswith(" cancelled"):
                self.cancelled += 1
            case Actor.US, CORDON.name:
                self.cordons += 1
                self._cordoned(happening.node)
            case Actor.US, UNCORDON.name:
                self.uncordons += 1
            case Actor.US, "evict":
                self.evictions += 1
                self._evicted(happening)
            case Actor.US, "evict refused":
                self.refusals += 1
            case _:
                pass

    def _cordoned(self, name: str) -> None:
        nodes = self._world.cluster.nodes
        node = nodes[name]
        out = [other for other in nodes.values() if other.unschedulable or not other.ready]
        zone = [other for other in out if other.zone == node.zone]
        self.most_out = max(self.most_out, len(out))
        self.most_out_in_a_zone = max(self.most_out_in_a_zone, len(zone))
        for event in self._world.platform.reported(name):
            policy = self._settings.policies(node.labels).of_kind(event.kind)
            at_once = policy.outside_window is OutsideWindow.IMMEDIATELY
            lead = max(policy.lead_time, timedelta(minutes=15)) if at_once else policy.lead_time
            wait = lead if event.kind in self._budget.exempt else timedelta()
            if self._world.now >= event.not_before - wait:
                # An event that has started, or is exempt and due, waits for no place.
                return
        if not node.ready:
            # It was out of service already, and needs no second place.
            return
        self._compare("maxUnavailable", out, list(nodes.values()), name)
        in_zone = [other for other in nodes.values() if other.zone == node.zone]
        self._compare("perZone", zone, in_zone, name)

    def _compare(self, limit: str, out: list[Node], total: list[Node], name: str) -> None:
        wanted = self._budget.max_unavailable if limit == "maxUnavailable" else self._budget.per_zone
        if wanted is not None and len(out) > wanted.of(len(total)):
            names = ", ".join(sorted(one.name for one in out))
            self.violations.append(f"{name} was cordoned over {limit} {wanted}: out of service are {names}")

    def _evicted(self, happening: Happening) -> None:
        cluster = self._world.cluster
        node = cluster.nodes.get(happening.node)
        if node is not None and not node.unschedulable:
            self.violations.append(f"{happening.subject} was evicted from {node.name}, which is not cordoned")
        pod = cluster.find_pod(happening.subject)
        if pod is None or not pod.ready or pod.deleting_until is not None:
            return
        for budget in cluster.budgets.values():
            # Counted before the pod goes: one more than wanted has to be healthy.
            if budget.covers(pod) and budget.healthy - 1 < budget.desired:
                self.violations.append(f"{pod.key} was evicted although PDB {budget.key} needs it")


WAITS, IGNORES, WARNS = "waits", "ignores", "warns"


class Sentence(Struct, frozen=True):
    """One sentence about a node.

    Two sentences with the same `key` are the same news, even if their numbers differ.
    """

    who: str
    key: tuple[object, ...]
    text: str


class Story(Struct, frozen=True):
    """Describes plans made with `settings`, in the time zone `zone`. Moments of `today` need no weekday."""

    settings: Settings
    zone: ZoneInfo
    today: date

    def clock(self, moment: datetime) -> str:
        """Return the time of day, with the weekday if that is not today's."""
        here = moment.astimezone(self.zone)
        clock = f"{here:%H:%M:%S}" if here.second else f"{here:%H:%M}"
        return clock if here.date() == self.today else f"{clock} on {here:%A}"

    def start(self, plan: NodePlan, labels: Mapping[str, str], now: datetime) -> str:
        """Return why the drain of a node with these labels starts `now`, and what the deadline overruled."""
        starting = [event for event in plan.events if event.asks and event.may_start]
        return "; ".join(dict.fromkeys(self._why(event, labels, now) for event in starting))

    def _why(self, event: JudgedEvent, labels: Mapping[str, str], now: datetime) -> str:
        openness = self.settings.calendar.at(now, labels)
        if openness.open and openness.window is not None and openness.changes_at is not None:
            # A night ends in the morning, so the day is clear.
            end = openness.changes_at.astimezone(self.zone)
            return f"window {openness.window} is open until {end:%H:%M}"
        policy = self.settings.policies(labels)[event.event.kind, event.event.condition]
        at_deadline = policy is not None and policy.outside_window is OutsideWindow.AT_DEADLINE
        why = event.opening.words
        if at_deadline and event.deadline is not None and now >= event.deadline:
            why = f"the deadline {self.clock(event.deadline)} is reached"
        return f"{why}, though no maintenance window is open" if event.opening.overruled else why

    def end(self, quiet_since: datetime) -> str:
        """Return why the node is uncordoned; its events are gone since `quiet_since`."""
        return f"the events have been gone since {self.clock(quiet_since)}"

    def standing(self, plan: NodePlan, labels: Mapping[str, str], now: datetime) -> tuple[Sentence, ...]:
        """Return what holds the node, and which of its events are ignored."""
        codes = {hold.code for hold in plan.holds}
        # One sentence says why a node is still cordoned. Events say more than that it is not Ready.
        skipped = node_ready.name if events_gone.name in codes else ""
        found = [
            Sentence(WAITS, *self._hold(hold, plan, labels, now))
            for hold in plan.holds
            if hold.code != skipped
        ]
        planned = plan.schedule
        if planned is not None and planned.missed and not planned.started:
            found.append(Sentence(WARNS, (planned.cause,), in_zone(planned.because, self.zone)))
        if plan.after is not State.IN_MAINTENANCE:
            ignored = (event for event in plan.events if not event.asks)
            found += [Sentence(IGNORES, (event.event.kind,), event.because) for event in ignored]
        return tuple(found)

    def _hold(
        self, hold: Hold, plan: NodePlan, labels: Mapping[str, str], now: datetime
    ) -> tuple[tuple[object, ...], str]:
        """Return the key and the text of one hold."""
        if hold.code == window_open.name:
            waits = tuple(self._window(plan, labels, now))
            return (hold.code,), "; ".join(dict.fromkeys(waits))
        if hold.code == start_planned.name and plan.schedule is not None:
            planned = plan.schedule
            at = (
                f"planned for {self.clock(planned.planned_start)}" if planned.planned_start else "not planned"
            )
            return (hold.code, planned.planned_start), f"its drain is {at}: {planned.because}"
        if hold.code == events_gone.name:
            quiet = plan.record.quiet_since if plan.record is not None else None
            if quiet is not None and hold.until is not None:
                gone = f"the events have been gone since {self.clock(quiet)}"
                return (
                    hold.code,
                    quiet,
                ), f"stays cordoned: {gone}; it settles until {self.clock(hold.until)}"
            kinds = tuple(event.event.kind for event in plan.events)
            return (hold.code, kinds), f"stays cordoned: {hold.reason}"
        if hold.code == node_ready.name:
            return (hold.code,), f"stays cordoned: {hold.reason}"
        if hold.code == DRAIN_BLOCKED.code and plan.draining.progress is not None:
            pods = tuple(sorted(blocker.pod for blocker in plan.draining.progress.blockers))
            return (hold.code, pods), hold.reason
        return (hold.code,), hold.reason

    def _window(self, plan: NodePlan, labels: Mapping[str, str], now: datetime) -> Iterator[str]:
        opening = next(iter(self.settings.calendar.openings(now, labels, count=1)), None)
        for event in plan.events:
            if not event.asks or event.may_start:
                continue
            deadline = event.deadline
            if opening is not None and (deadline is None or opening.start < deadline):
                before = f", before the deadline {self.clock(deadline)}" if deadline is not None else ""
                waits = f"waits for {opening.window}, which opens at {self.clock(opening.start)}{before}"
            elif deadline is not None:
                starts = self.clock(deadline)
                waits = f"no window opens before the deadline, so it starts at {starts} at the earliest"
            else:
                waits = "no window opens"
            yield f"no maintenance window is open; {waits}"


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
    # Of a terminal that calls itself dumb, rich takes no width.
    demo = _Demo(
        console or Console(highlight=False, soft_wrap=True, emoji=False, markup=False, width=width())
    )
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
        self._world.ended = self.observers

    @property
    def now(self) -> datetime:
        """The time in the day (UTC)."""
        return self._world.now

    def run(self) -> int:
        """Play the day from its first minute to its last, and print what came of it."""
        build(self._world)
        cluster = self._world.cluster
        pools = Counter(node.pool for node in cluster.nodes.values())
        sizes = ", ".join(f"{count} {pool}" for pool, count in pools.items())
        nodes, pods = count_of(len(cluster.nodes), "node"), count_of(len(cluster.pods), "pod")
        self._text(f"A simulated AKS cluster: {nodes} ({sizes}) in 3 zones, {pods}.")
        self._text("Azure, Kubernetes and the clock are simulated. The code that decides and drains is real.")
        self._text("Its settings:\n")
        self._out.print(Text("".join(f"    {line}\n" for line in SETTINGS.splitlines()), style="dim"))
        self._out.print(f"{START:%A}, {START.day} {START:%B %Y}, {START:%H:%M} to midnight, Berlin time.")

        self._world.log.listeners.append(self._heard)
        for chapter in chapters():
            self._world.clock.at(chapter.at.astimezone(UTC), partial(self._begin, chapter))
        plan, outcomes = self._pass()
        while self._world.now < END:
            self._until_next_pass(plan.next_change)
            plan, outcomes = self._pass()

        self._heading("The report at midnight")
        self._out.print()
        columns = self._out.width if self._out.is_terminal else None
        self._out.print(Text(as_text(to_report(plan, outcomes, rehearsed=False), columns).rstrip()))
        self._heading("The day in numbers")
        audit = self._audit
        events = ", ".join(f"{count} {kind}" for kind, count in audit.events.items())
        stopped = count_of(self._stopped, "drain")
        cordons = f"{audit.cordons} cordoned, {self._drained} of them drained, {stopped} stopped"
        refusals = count_of(audit.refusals, "eviction")
        most = f"at most {audit.most_out} out of service at once, {audit.most_out_in_a_zone} in a zone"
        word = "never exceeded, checked at every cordon and every eviction"
        for label, text in (
            ("events", f"{sum(audit.events.values())}: {events}; {audit.cancelled} cancelled"),
            ("nodes", f"{cordons}; {audit.uncordons} uncordoned"),
            ("pods", f"{audit.evictions} evicted; PodDisruptionBudgets refused {refusals}"),
            ("budgets", f"{'EXCEEDED' if audit.violations else word}; {most}"),
            ("passes", f"{self._passes}: one per minute, and one after each change"),
        ):
            self._text(f"{label:<9}{text}", 9)
        for violation in audit.violations:
            self._out.print(Text(f"WRONG: {violation}", style="red"))
        self._heading("What next")
        for command, does in _NEXT:
            self._text(in_own_words(f"reconciler {command:<19}{does}"), 4)
        return 1 if audit.violations else 0

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

    def _begin(self, chapter: Chapter) -> None:
        self._heading(chapter.title)
        chapter.begin(self._world)

    def _heading(self, title: str) -> None:
        self._out.print()
        self._text(title, styles=(("bold", 0, len(title)),))

    def _text(self, text: str, indent: int = 0, styles: Iterable[tuple[str, int, int]] = ()) -> None:
        """Print a text, folded at the width of a terminal; each style is of a part of its first line."""
        first, *more = folded(text, self._out.width if self._out.is_terminal else None, indent)
        line = Text(first)
        for style, start, end in styles:
            line.stylize(style, start, end)
        self._out.print(line)
        for part in more:
            self._out.print(Text(part))

    def _line(self, who: str, node: str, text: str) -> None:
        clock = f"{self._world.now.astimezone(ZONE):%H:%M:%S}  "
        actor = f"{clock}{who:<9} "
        styles = (("dim", 0, len(clock)), (_STYLES[who], len(clock), len(actor)))
        self._text(f"{actor}{node:<30} {text}" if node else f"{actor}{text}", len(actor), styles)

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
        keys = tuple(sentence.key for sentence in sentences)
        if keys != self._printed.get(plan.node, ()):
            for who in dict.fromkeys(sentence.who for sentence in sentences):
                self._line(
                    who, plan.node, "; ".join(sentence.text for sentence in sentences if sentence.who == who)
                )
        self._printed[plan.node] = keys

    def _drain_moved(self, progress: DrainProgress) -> None:
        if progress.phase is self._phases.get(progress.node):
            return
        self._phases[progress.node] = progress.phase
        if progress.phase is Phase.DRAINED:
            self._woken = self._world.now
            self._drained += 1
            took = format_duration(self._world.now - self._begun[progress.node])
            self._line(
                "acts", progress.node, f"drained it in {took}: {count_of(progress.evicted, 'pod')} evicted"
            )


_NEXT = (
    ("report", "what it would do in your cluster; it only reads"),
    ("explain NODE", "why a node is not drained, or when it will be"),
    ("check-config FILE", "what your settings do; see docs/install.md"),
)
"""Commands to try after the demo, with what each shows."""
