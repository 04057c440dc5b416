"""Plays a scenario against one policy: real passes on the simulated cluster, from change to change."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from reconciler.features.simulate.fleet import PartialApi, TimedDrains
from reconciler.features.simulate.scenario import PlayedEvent, Scenario
from reconciler.features.simulate.scorer import Score, Scorer
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.ports import Notification, WritableOutside
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.passes.parts import Parts
from reconciler.settings.schema import Mode, Settings
from reconciler.simulation.clock import Happening, Log, VirtualClock
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.platform import Reporter, SimulatedPlatform, VmEvent, quiet_conditions

REPLACED_AFTER = timedelta(minutes=5)
"""How long after a VM is gone a new one has joined under its name."""

_DOWN = timedelta(minutes=4)
"""How long a reboot or redeploy stops the VM, if the event lasts that long."""

_MOST_PASSES = 10
"""Passes at one moment. A pass that still writes after so many would never stop."""

_AT_LEAST = timedelta(minutes=1)
"""The pause before the next pass if a plan names no later moment than now."""


RunPass = Callable[[WritableOutside, Settings, datetime], tuple[Plan, tuple[Outcome, ...]]]


def playable(settings: Settings) -> Settings:
    """Return the settings as they are played.

    Mode `Enforce`, because another mode starts nothing. Nothing is published, because nobody reads it. No
    service is polled: what it announces comes as an event with the same notice.
    """
    polled = {
        name: section.model_copy(update={"enabled": False})
        for name, section in settings.sources
        if hasattr(section, "every")
    }
    sources = settings.sources.model_copy(update=polled)
    return settings.model_copy(update={"mode": Mode.ENFORCE, "publish": (), "sources": sources})


def play(
    scenario: Scenario,
    settings: Settings,
    run_pass: RunPass,
    parts: Parts,
    *,
    every: timedelta | None = None,
    whole: bool = False,
) -> Score:
    """Return what becomes of the scenario's events under these settings.

    A pass runs at each change that it may act on, and at each moment that a plan names, and it reads only
    the nodes that a decision is about. With `every`, passes also run that often, and with `whole` they read
    all nodes: neither changes the score. `parts` are those of `run_pass`.
    """
    return _Play(scenario, playable(settings), run_pass, parts, every, whole=whole).run()


class _Silence:
    """A notifier for a cluster in which nobody reads Events."""

    def notify(self, notification: Notification) -> bool:
        """Do nothing."""
        return True


class _Play:
    """One run: the world, the passes, and whether something has changed since the last one."""

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        run_pass: RunPass,
        parts: Parts,
        every: timedelta | None,
        *,
        whole: bool,
    ) -> None:
        self._scenario, self._settings, self._every = scenario, settings, every
        self._run_pass = run_pass
        self._clock = VirtualClock(scenario.start)
        self._cluster = SimulatedCluster(self._clock, Log())
        self._platform = SimulatedPlatform(self._cluster, prefix=settings.keys.prefix)
        # The agent if the policy reads it, else the detector of AKS: two reports of one event say the same.
        self._by_agent = parts.sources.wants(settings).agents
        self._nodes: dict[str, Node] = {}
        for played in scenario.nodes:
            node = played.node()
            node = node if self._by_agent else replace(node, conditions=quiet_conditions())
            self._nodes[node.name] = node
            self._cluster.add_node(node)
        takes = {played.name: played.drain for played in scenario.nodes}
        drains = TimedDrains(self._cluster, takes.__getitem__)
        api = PartialApi(self._cluster, settings, parts, drains.pods, whole=whole)
        self._scorer = Scorer(scenario, settings, self._cluster, drains)
        self._api = api
        self._outside = WritableOutside(reader=api, writer=api, drainer=drains, notifier=_Silence())
        self._cluster.log.listeners.append(self._happened)
        drains.listeners.append(self._drained)

    def run(self) -> Score:
        """Play the scenario to its end."""
        for event in self._scenario.events:
            self._clock.at(event.at, partial(self._announce, event))
        due = self._passes()
        while True:
            until = min(due, self._clock.next() or due)
            if until > self._scenario.end:
                break
            self._clock.advance(until)
            if self._api.news or until >= due:
                due = self._passes()
        self._clock.advance(self._scenario.end)
        return self._scorer.score(self._api.ignored)

    def _passes(self) -> datetime:
        """Run passes until nothing changes at this moment; return when the next one is due (UTC)."""
        now = self._clock.now()
        for _ in range(_MOST_PASSES):
            self._api.news = False
            plan, _ = self._run_pass(self._outside, self._settings, now)
            self._scorer.passed(plan)
            # The next pass may give a place or a slot that this one gives up to another node.
            frees = any(
                node.todo.stop_drain
                or (node.before is State.IN_MAINTENANCE and node.after is not State.IN_MAINTENANCE)
                for node in plan.nodes
            )
            if not (self._api.news and frees):
                break
        # What the passes have written themselves is no news.
        self._api.news = False
        due = plan.next_change
        if due is not None and due <= now:
            due = now + _AT_LEAST
        if self._every is not None:
            tick = now + self._every
            due = min(due or tick, tick)
        return due or self._scenario.end + _AT_LEAST

    def _drained(self, node: str) -> None:
        del node
        self._api.news = True

    def _happened(self, happening: Happening) -> None:
        if happening.what == "node gone":
            node = self._nodes[happening.node]
            self._clock.after(REPLACED_AFTER, lambda: self._cluster.add_node(node))

    def _announce(self, event: PlayedEvent) -> None:
        """Make an event known, and put on the agenda what follows from it."""
        if event.node not in self._cluster.nodes:
            # Its VM was replaced, so the event came to nothing.
            self._scorer.dropped(event)
            return
        if event.by_request:
            self._request(event)
            return
        reporter = Reporter.AGENT if self._by_agent else Reporter.CONDITION
        shown = VmEvent(
            event.node,
            event.kind,
            event.not_before,
            seconds=event.seconds,
            starts=event.starts,
            down=min(_DOWN, event.lasts),
            lasts=event.lasts,
            reported_by=reporter,
            id=event.id,
        )
        if event.at >= event.starts:
            self._platform.strike(shown)
            return
        self._platform.announce(shown)
        if event.cancelled is not None:
            self._clock.at(event.cancelled, lambda: self._platform.cancel(shown))

    def _request(self, event: PlayedEvent) -> None:
        """Ask for maintenance in the annotation, as a person does."""
        text = json.dumps({"kind": event.kind, "notBefore": to_text(event.not_before), "id": event.id})
        self._annotate(event.node, text)
        if event.cancelled is None:
            self._clock.at(event.not_before, lambda: self._scorer.due(event))
        over = event.cancelled or event.not_before + event.lasts
        self._clock.at(over, lambda: self._withdraw(event, text))

    def _withdraw(self, event: PlayedEvent, text: str) -> None:
        self._scorer.over(event)
        node = self._cluster.nodes.get(event.node)
        if node is not None and node.annotations.get(self._key) == text:
            self._annotate(event.node, None)

    @property
    def _key(self) -> str:
        return self._settings.keys.names.request

    def _annotate(self, node: str, text: str | None) -> None:
        if node in self._cluster.nodes:
            self._cluster.annotate(node, self._key, text)
