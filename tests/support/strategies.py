"""Random clusters, events, clocks, settings and failures, as what the sources themselves would show.

Nodes are made of raw documents (conditions, annotations), so that a law is held over everything between
the document and the plan. Moments lie within some hours of `NOW`, where windows and deadlines matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

from reconciler.model.event import Initiator, Kind, Status
from reconciler.model.moments import to_text
from reconciler.model.node import (
    AUTOSCALER_TAINT,
    KARPENTER_LABEL,
    MECHANIC_LABEL,
    REMEDIATOR_TAINT,
    UPGRADE_STATUS_LABEL,
    Condition,
    Node,
)
from reconciler.model.pod import Pod
from reconciler.model.record import CaseRecord, Cordon, DrainRecord, Record, State, to_annotation
from reconciler.model.snapshot import Agents, Ledger, Remediator
from reconciler.model.steps import HeldStep
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import IMDS, NOW, PREFIX, RECORD, REQUEST, STATE
from tests.support.cases import self_service
from tests.support.worlds import world_of

ASKING = ("Reboot", "Redeploy", "Preempt", "Terminate")
KINDS = (*ASKING, "Freeze")
LIVE_MIGRATION = "Virtual machine is being paused because of a memory-preserving Live Migration operation."
IDS = ("A1", "B2", "C3")

moments = st.integers(-90, 480).map(lambda count: NOW + timedelta(minutes=count))
past = st.integers(0, 300).map(lambda count: NOW - timedelta(seconds=17 * count))

maybe_past = st.none() | past
booleans = st.booleans()
_texts = st.text(max_size=30)
numbers = cache(st.integers)

Value = TypeVar("Value", bound=Hashable)
_made: dict[tuple[Hashable, ...], st.SearchStrategy[Any]] = {}


def one_of(options: tuple[Value, ...]) -> st.SearchStrategy[Value]:
    """One of these, as a strategy that is made once: making it takes longer than drawing from it."""
    if options not in _made:
        _made[options] = st.sampled_from(options)
    return _made[options]


def rfc1123(moment: datetime) -> str:
    """A moment as Azure writes it."""
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


@st.composite
def imds_events(draw: st.DrawFn) -> dict[str, Any]:
    """One event in IMDS's own words, odd ones among them."""
    started = draw(booleans)
    date: str = "" if started else rfc1123(draw(moments))
    if not started and draw(numbers(0, 9)) == 0:
        date = "sometime soon"
    return {
        "EventId": draw(one_of(("", *IDS))),
        "EventType": draw(one_of((*KINDS, "Freeze", "Hibernate"))),
        "EventStatus": "Started" if started else "Scheduled",
        "NotBefore": date,
        "Description": draw(one_of(("", "Host server is undergoing maintenance.", LIVE_MIGRATION))),
        "EventSource": draw(one_of(("Platform", "Platform", "User"))),
        "DurationInSeconds": draw(one_of((-1, 0, 5, 30, 600))),
    }


reboots = st.fixed_dictionaries(
    {
        "EventId": st.sampled_from(("", *IDS)),
        "EventType": st.just("Reboot"),
        "EventStatus": st.sampled_from(("Scheduled", "Started")),
        "NotBefore": st.sampled_from(("", rfc1123(NOW + timedelta(hours=1)))),
    }
)
"""Reboots that differ only in their ids, dates and status."""
_at_most_two_events = st.lists(imds_events(), max_size=2)


@st.composite
def messages(draw: st.DrawFn) -> str:
    """A condition's message by AKS's grammar, or something that is not."""
    if draw(numbers(0, 9)) == 0:
        return draw(_texts)
    status = draw(one_of(("Scheduled", "Started")))
    text = f"{draw(one_of(KINDS))} {status}"
    if status == "Scheduled":
        text += f": {rfc1123(draw(moments))}"
    text += f". DurationInSeconds: {draw(one_of((-1, 5, 600)))}."
    text += draw(one_of(("", f" {LIVE_MIGRATION}", " Host server is undergoing maintenance.")))
    text += " For more information, see https://aka.ms/aks/scheduledevents."
    return text + draw(one_of(("", *(f" EventId: {one}" for one in IDS))))


@st.composite
def requests(draw: st.DrawFn) -> str:
    """A request, sometimes an unreadable one."""
    if draw(numbers(0, 9)) == 0:
        return draw(one_of(("", "reboot please", '{"kind":"Nap"}', "[]", '{"kind":"Reboot","x":1}')))
    document: dict[str, str] = {"kind": draw(one_of((*KINDS, "LiveMigration")))}
    if draw(booleans):
        document["notBefore"] = draw(moments).isoformat()
    return json.dumps(document)


_messages, _requests = messages(), requests()


@st.composite
def event_conditions(draw: st.DrawFn) -> Condition:
    """AKS's condition in any of its three states, its heartbeat fresh or not."""
    status = draw(one_of(("True", "True", "False", "False", "False", "Unknown")))
    message = draw(_messages) if status == "True" else "VM has no scheduled event"
    age = draw(one_of((0, 4, 14, 20)))
    return builders.condition("VMEventScheduled", status, message, at=NOW - timedelta(minutes=age))


_event_conditions = event_conditions()

known_events = st.builds(
    builders.known,
    kind=st.sampled_from((Kind.REBOOT, Kind.REDEPLOY, Kind.PREEMPT, Kind.LIVE_MIGRATION)),
    not_before=st.none() | moments,
    ids=st.sampled_from(((), ("A1",), ("B2",))),
    sources=st.sampled_from(
        (("imds",), ("request",), ("condition:VMEventScheduled",), ("condition:VMEventScheduled", "imds"))
    ),
)


_at_most_one_known = st.lists(known_events, max_size=1)
# One event is on record once.
_some_known = st.lists(
    known_events, min_size=1, max_size=2, unique_by=lambda one: (one.kind, one.ids or one.not_before)
)
_maybe_now = st.none() | st.just(NOW)


def _hook(step: HeldStep, since: datetime, *, over: bool) -> dict[str, str]:
    """A hook in the record of a case, as JSON."""
    ended = {"end": "timedOut"} if over else {}
    return {"hook": f"{step}.backup", "since": to_text(since), **ended}


_hooks = st.builds(_hook, st.sampled_from(HeldStep), past, over=st.booleans())
_parts: st.SearchStrategy[dict[str, object]] = st.just({}) | _hooks.map(lambda hook: {"hooks": [hook]})
_asked = st.just(()) | st.builds(self_service, past, st.integers(1, 3)).map(lambda asked: (asked,))


@st.composite
def records(draw: st.DrawFn, uid: str) -> Record:
    """Any record that the program itself could have left behind."""
    return Record(uid).with_case("default", draw(_cases), NOW)


@st.composite
def cases(draw: st.DrawFn) -> CaseRecord:
    """Anything that one profile could remember of a node."""
    state = draw(one_of(tuple(State)))
    dismissed = tuple(draw(_at_most_one_known))
    if state is State.OPERATIONAL:
        return CaseRecord(dismissed=dismissed)
    since = draw(past)
    events = tuple(draw(_some_known))
    if state is State.REQUIRED:
        return CaseRecord(state, since, events, dismissed=dismissed)
    done = draw(_maybe_now)
    return CaseRecord(
        state=state,
        since=since,
        events=events,
        cordon=draw(one_of((Cordon.OURS, Cordon.OURS, Cordon.FOREIGN))),
        drain=DrainRecord(since, draw(numbers(1, 3)), done),
        quiet_since=draw(maybe_past),
        dismissed=dismissed,
        asked=draw(_asked),
        parts=draw(_parts),
    )


_cases = cases()
_records = cache(records)


@st.composite
def nodes(draw: st.DrawFn, name: str, *, fresh: bool = False) -> Node:
    """A node with whatever the sources and we have written on it; a `fresh` one was never in maintenance."""
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    conditions: list[Condition] = []
    spoken = draw(numbers(0, 7))
    if spoken & 1:
        annotations[REQUEST] = draw(_requests)
    instance = int(name.removeprefix("n"))
    if spoken & 2:
        reported = draw(_at_most_two_events)
        annotations[IMDS] = builders.published(*reported, vm=builders.vm_name(instance))
    if spoken & 4 or draw(booleans):
        conditions.append(draw(_event_conditions))
    if draw(numbers(0, 5)) == 0:
        annotations[f"{builders.PREFIX}/{draw(one_of(tuple(HeldStep)))}.backup"] = "somebody"
    uid = f"uid-{name}"
    cordoned = draw(numbers(0, 5)) == 0
    if not fresh and draw(booleans):
        held = draw(_records(uid))
        if not held.empty:
            annotations[RECORD] = to_annotation(held)
        if held.worst is not State.OPERATIONAL:
            labels[STATE] = held.worst.value
        if held.worst is State.IN_MAINTENANCE:
            cordoned = draw(numbers(0, 4)) > 0
        if draw(numbers(0, 9)) == 0:
            annotations[RECORD] = draw(one_of(("{", '{"version":2}', "null", "[]")))
    odd = draw(numbers(0, 15))
    if odd == 0:
        labels[KARPENTER_LABEL] = "spot"
    elif odd == 1:
        labels[f"{PREFIX}/ignore"] = "true"
    elif odd == 2:
        labels[MECHANIC_LABEL] = "true"
        cordoned = True
    elif odd == 3:
        labels[UPGRADE_STATUS_LABEL] = "Quarantined"
        cordoned = cordoned or draw(booleans)
    elif odd == 4:
        annotations |= builders.IN_UPGRADE
    bare = builders.node(
        name,
        uid=uid,
        zone=draw(one_of(("", "1", "2"))),
        pool=draw(one_of(("batch", "web"))),
        labels=labels,
        annotations=annotations,
        unschedulable=cordoned,
        ready=draw(numbers(0, 7)) > 0,
        ready_since=draw(maybe_past),
        conditions=tuple(conditions),
        taints=draw(one_of(((), (), (), (), (), (AUTOSCALER_TAINT,), (REMEDIATOR_TAINT,)))),
    )
    return builders.on_vm(bare, instance)


asking_requests = st.sampled_from(
    (
        builders.DRAIN_NOW,
        builders.DRAIN_NOW,
        '{"kind":"Redeploy"}',
        '{"kind":"Preempt"}',
        f'{{"kind":"Terminate","notBefore":"{(NOW + timedelta(days=14)).isoformat()}"}}',
        f'{{"kind":"Reboot","notBefore":"{(NOW + timedelta(minutes=20)).isoformat()}"}}',
    )
)
_zones, _pools = st.sampled_from(("", "1", "2")), st.sampled_from(("batch", "web"))
_two_zones = st.sampled_from(("1", "2"))


@st.composite
def asking_nodes(
    draw: st.DrawFn,
    name: str,
    requests: st.SearchStrategy[str] = asking_requests,
    zones: st.SearchStrategy[str] = _zones,
) -> Node:
    """A healthy node that was never in maintenance, and whose events require a drain."""
    bare = builders.node(
        name,
        zone=draw(zones),
        pool=draw(_pools),
        annotations={REQUEST: draw(requests)},
        conditions=(builders.quiet(),),
    )
    return builders.on_vm(bare, int(name.removeprefix("n")))


_waiting_requests = st.sampled_from(
    (
        builders.DRAIN_NOW,
        '{"kind":"Redeploy"}',
        f'{{"kind":"Reboot","notBefore":"{(NOW + timedelta(minutes=20)).isoformat()}"}}',
    )
)


def waiting_nodes(name: str) -> st.SearchStrategy[Node]:
    """A node as of `asking_nodes`, in a zone, whose event is of no exempt kind: it needs a place."""
    return asking_nodes(name, _waiting_requests, _two_zones)


_late_requests = st.integers(0, 60).map(
    lambda count: f'{{"kind":"Reboot","notBefore":"{(NOW + timedelta(minutes=count)).isoformat()}"}}'
)


def late_nodes(name: str) -> st.SearchStrategy[Node]:
    """A node as of `asking_nodes` whose deadline is near or over."""
    return asking_nodes(name, _late_requests)


_quiet_for = st.sampled_from((*(NOW - timedelta(minutes=10),) * 4, NOW - timedelta(minutes=1), None))


@st.composite
def ending_nodes(draw: st.DrawFn, name: str, *, drained: bool = True) -> Node:
    """A node in maintenance, drained, whose sources no longer report any event; it was quiet for a while.

    Unless it is `drained`, its drain goes on, and its events have just gone.
    """
    uid, instance = f"uid-{name}", int(name.removeprefix("n"))
    held = CaseRecord(
        state=State.IN_MAINTENANCE,
        since=NOW - timedelta(hours=1),
        events=(draw(known_events),),
        cordon=draw(st.sampled_from((Cordon.OURS, Cordon.OURS, Cordon.OURS, Cordon.FOREIGN))),
        drain=DrainRecord(NOW - timedelta(hours=1), 1, NOW - timedelta(minutes=50) if drained else None),
        quiet_since=draw(_quiet_for) if drained else None,
    )
    bare = builders.node(
        name,
        uid=uid,
        zone=draw(_zones),
        pool=draw(_pools),
        labels={STATE: State.IN_MAINTENANCE.value},
        annotations={
            RECORD: to_annotation(builders.remembered(held, uid)),
            IMDS: builders.published(vm=builders.vm_name(instance)),
        },
        unschedulable=True,
        conditions=(builders.quiet(),),
    )
    return builders.on_vm(bare, instance)


def leaving_nodes(name: str) -> st.SearchStrategy[Node]:
    """A node as of `ending_nodes` whose drain goes on."""
    return ending_nodes(name, drained=False)


@st.composite
def pods(draw: st.DrawFn, on: str) -> tuple[Pod, ...]:
    """Some pods of one node: ordinary ones, and those that are kept, skipped or going."""
    return tuple(
        builders.pod(
            f"{on}-{number}",
            on,
            owner=draw(one_of(("ReplicaSet", "ReplicaSet", "DaemonSet", ""))),
            empty_dir=draw(numbers(0, 4)) == 0,
            deleting_until=draw(one_of((None, None, None, NOW))),
        )
        for number in range(draw(numbers(0, 3)))
    )


_agents = st.sampled_from(
    (
        *(Agents(installed=True),) * 4,
        Agents(installed=True, not_ready=frozenset(("n0",))),
        Agents(),
        Agents(problem="403"),
    )
)
_remediators = st.sampled_from((Remediator(), Remediator(), Remediator(True, on_freeze=True)))


_pods = cache(pods)


@cache
def _node(name: str, fresh: bool) -> st.SearchStrategy[Node]:
    return nodes(name, fresh=fresh)


@cache
def _of_kind(more: Callable[[str], st.SearchStrategy[Node]], name: str) -> st.SearchStrategy[Node]:
    return more(name)


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    most: int = 5,
    fresh: bool = False,
    more: Callable[[str], st.SearchStrategy[Node]] | None = None,
    often: bool = False,
) -> World:
    """A simulated world whose cluster is in any state.

    About half of its nodes are of the kind `more`, or three quarters of them.
    """
    names = [f"n{number}" for number in range(draw(st.integers(1, most)))]
    others = numbers(0, 3) if often else numbers(0, 1)
    world = world_of(
        [
            draw(_of_kind(more, name) if more is not None and draw(others) else _node(name, fresh))
            for name in names
        ],
        [pod for name in names for pod in draw(_pods(name))],
    )
    world.cluster.agents = draw(_agents)
    world.cluster.remediator = draw(_remediators)
    world.cluster.ledger = Ledger(draw(maybe_past))
    if draw(booleans):
        world.cluster.others.pop("nodemaintenances", None)
    return world


WINDOWS = (
    "",
    "",
    'windows: [{name: open, start: "11:00", end: "13:00"}]',
    'windows: [{name: later, start: "14:00", end: "15:00"}]',
    'windows: [{name: batch, start: "22:00", end: "05:00", nodeSelector: {agentpool: batch}}]',
)
NOT_ALLOWED = (
    "",
    "",
    "notAllowed: [{name: sale, start: 2026-11-21, end: 2026-11-21T18:00, reason: sale}]",
    "notAllowed: [{name: sale, start: 2026-11-21, end: 2026-11-21T18:00, absolute: true}]",
)
BUDGETS = (
    "maxUnavailable: 50%",
    "maxUnavailable: 100%",
    "maxUnavailable: 1",
    "maxUnavailable: 0",
    "maxUnavailable: 2, perZone: 1",
    "maxUnavailable: 100%, perPool: 1, exempt: []",
    "maxUnavailable: 3, spacing: 10m",
)
LIMITED = (
    "maxUnavailable: 100%, perZone: 1",
    "maxUnavailable: 100%, perPool: 1, exempt: []",
    "maxUnavailable: 4, perZone: 2, perPool: 50%",
    "maxUnavailable: 3, exempt: []",
)
"""Budgets in which most starts need a place, in a zone or a pool too."""

MEANINGS = (
    "",
    "LiveMigration: {drain: true}",
    "LiveMigration: {drain: true, outsideWindow: AtDeadline, minDuration: 10s}, Freeze: {drain: true}",
    "Reboot: {outsideWindow: Never}, userInitiated: Drain",
    "Redeploy: {outsideWindow: Immediately}, Unknown: {drain: true}",
    "Reboot: {acknowledge: true}, Redeploy: {acknowledge: true, outsideWindow: Immediately}",
    "Unknown: {drain: true, acknowledge: true}, Reboot: {outsideWindow: Never}, userInitiated: Drain",
    "Freeze: {drain: true, acknowledge: true}, Preempt: {acknowledge: true}",
)
SIGNS = ("drainsafe", "node-conditions", "nodemaintenances")


@st.composite
def policies(
    draw: st.DrawFn,
    *,
    mode: str = "",
    windows: tuple[str, ...] = WINDOWS,
    not_allowed: tuple[str, ...] = NOT_ALLOWED,
    budgets: tuple[str, ...] = BUDGETS,
) -> Settings:
    """Settings as a file would give them, with one of these windows, freezes and budgets."""
    lines = [
        draw(one_of(windows)),
        draw(one_of(not_allowed)),
        f"budget: {{{draw(one_of(budgets))}}}",
        f"events: {{{draw(one_of(MEANINGS))}}}",
        draw(one_of(("", "", "adopt: [mechanic]"))),
        draw(one_of(("", "", "coexist: {aksRemediator: Leave}"))),
        draw(one_of(("", "", "drain: {maxConcurrentNodes: 1}"))),
        draw(one_of(("", "uncordon: {settle: 5m}"))),
        f"publish: [{', '.join(draw(one_of(((), (), SIGNS[:1], SIGNS[1:], SIGNS))))}]",
    ]
    chosen = mode or draw(one_of(("Enforce", "Enforce", "Enforce", "Finish")))
    return builders.settings("\n".join(line for line in lines if line), mode=chosen)


signals = st.builds(
    builders.signal,
    source=st.sampled_from(("imds", "request", "condition:VMEventScheduled")),
    kind=st.sampled_from(tuple(Kind)),
    status=st.sampled_from(tuple(Status)),
    not_before=st.none() | moments,
    duration=st.none() | st.integers(0, 600).map(lambda count: timedelta(seconds=count)),
    event_id=st.sampled_from(("", "A1", "a1", "B2")),
    description=st.sampled_from(("", "Host server is undergoing maintenance.")),
    initiator=st.none() | st.sampled_from(tuple(Initiator)),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
deep = st.sampled_from(("[" * 100_000, '{"a":' * 50_000, "1e999", '"\\ud800"', "9" * 5000))
garbage = st.text(max_size=40) | json_values.map(json.dumps) | deep
"""Texts that a person may have written instead of a document."""
