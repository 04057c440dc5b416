"""What the demo tells of a simulated day: a story for people, and an audit of its effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.values import in_zone
from reconciler.model.holds import HoldCode
from reconciler.model.node import Node
from reconciler.model.outcome import ActionName
from reconciler.model.plan import Hold, JudgedEvent, NodePlan
from reconciler.model.record import State
from reconciler.profiles.checks.platform import events_gone, node_ready
from reconciler.profiles.checks.starts import start_planned, window_open
from reconciler.settings.policies import OutsideWindow
from reconciler.settings.schema import Settings
from reconciler.simulation.clock import Actor, Happening
from reconciler.simulation.platform import VmEvent
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
            case Actor.US, ActionName.CORDON:
                self.cordons += 1
                self._cordoned(happening.node)
            case Actor.US, ActionName.UNCORDON:
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
        out = [one for one in nodes.values() if one.unschedulable or not one.ready]
        zone = [one for one in out if one.zone == node.zone]
        self.most_out = max(self.most_out, len(out))
        self.most_out_in_a_zone = max(self.most_out_in_a_zone, len(zone))
        if any(self._is_exempt(event, node) for event in self._world.platform.reported(name)):
            return
        if not node.ready:
            # It was out of service already, and needs no second place.
            return
        self._compare("maxUnavailable", out, list(nodes.values()), name)
        in_zone = [one for one in nodes.values() if one.zone == node.zone]
        self._compare("perZone", zone, in_zone, name)

    def _is_exempt(self, event: VmEvent, node: Node) -> bool:
        """Return whether the event waits for no place: it has started, or is exempt and due."""
        policy = self._settings.policies(node.labels).of_kind(event.kind)
        at_once = policy.outside_window is OutsideWindow.IMMEDIATELY
        lead = max(policy.lead_time, timedelta(minutes=15)) if at_once else policy.lead_time
        wait = lead if event.kind in self._budget.exempt else timedelta()
        return self._world.now >= event.not_before - wait

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
        # One sentence says why a node is still cordoned: its events come before its readiness.
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
        if hold.code == HoldCode.DRAIN and plan.draining.progress is not None:
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
                waits = f"no window opens before the deadline, so it starts not before {self.clock(deadline)}"
            else:
                waits = "no window opens"
            yield f"no maintenance window is open; {waits}"
