"""Random clusters, events, clocks, settings and failures, as what the sources themselves would show.

Nodes are made of raw documents (conditions, annotations), so that a law is held over everything between
the document and the plan. Moments lie within some hours of `NOW`, where windows and deadlines matter.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from reconciler.model.event import Initiator, Kind, Signal, Status
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
from reconciler.model.record import (
    CaseRecord,
    Cordon,
    DrainRecord,
    KnownEvent,
    Record,
    SelfService,
    State,
)
from reconciler.model.record_text import to_annotation
from reconciler.model.snapshot import Agents, Ledger, Remediator
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import IMDS, NOW, PREFIX, RECORD, REQUEST, STATE
from tests.support.worlds import world_of

ASKING = ("Reboot", "Redeploy", "Preempt", "Terminate")
KINDS = (*ASKING, "Freeze")
LIVE_MIGRATION = "Virtual machine is being paused because of a memory-preserving Live Migration operation."
IDS = ("A1", "B2", "C3")

moments = st.integers(-90, 480).map(lambda count: NOW + timedelta(minutes=count))
past = st.integers(0, 300).map(lambda count: NOW - timedelta(seconds=17 * count))


def rfc1123(moment: datetime) -> str:
    """A moment as Azure writes it."""
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


@st.composite
def imds_events(draw: st.DrawFn) -> dict[str, Any]:
    """One event in IMDS's own words, odd ones among them."""
    started = draw(st.booleans())
    date: str = "" if started else rfc1123(draw(moments))
    if not started and draw(st.integers(0, 9)) == 0:
        date = "sometime soon"
    return {
        "EventId": draw(st.sampled_from(("", *IDS))),
        "EventType": draw(st.sampled_from((*KINDS, "Freeze", "Hibernate"))),
        "EventStatus": "Started" if started else "Scheduled",
        "NotBefore": date,
        "Description": draw(st.sampled_from(("", "Host server is undergoing maintenance.", LIVE_MIGRATION))),
        "EventSource": draw(st.sampled_from(("Platform", "Platform", "User"))),
        "DurationInSeconds": draw(st.sampled_from((-1, 0, 5, 30, 600))),
    }


@st.composite
def messages(draw: st.DrawFn) -> str:
    """A condition's message by AKS's grammar, or something that is not."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.text(max_size=30))
    status = draw(st.sampled_from(("Scheduled", "Started")))
    text = f"{draw(st.sampled_from(KINDS))} {status}"
    if status == "Scheduled":
        text += f": {rfc1123(draw(moments))}"
    text += f". DurationInSeconds: {draw(st.sampled_from((-1, 5, 600)))}."
    text += draw(st.sampled_from(("", f" {LIVE_MIGRATION}", " Host server is undergoing maintenance.")))
    text += " For more information, see https://aka.ms/aks/scheduledevents."
    return text + draw(st.sampled_from(("", *(f" EventId: {one}" for one in IDS))))


@st.composite
def requests(draw: st.DrawFn) -> str:
    """A request, now and then one that nobody can read."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(("", "reboot please", '{"kind":"Nap"}', "[]", '{"kind":"Reboot","x":1}')))
    document: dict[str, str] = {"kind": draw(st.sampled_from((*KINDS, "LiveMigration")))}
    if draw(st.booleans()):
        document["notBefore"] = draw(moments).isoformat()
    return json.dumps(document)


@st.composite
def event_conditions(draw: st.DrawFn) -> Condition:
    """AKS's condition in any of its three states, its heartbeat fresh or not."""
    status = draw(st.sampled_from(("True", "True", "False", "False", "False", "Unknown")))
    message = draw(messages()) if status == "True" else "VM has no scheduled event"
    age = draw(st.sampled_from((0, 4, 14, 20)))
    return builders.condition("VMEventScheduled", status, message, at=NOW - timedelta(minutes=age))


known_events = st.builds(
    KnownEvent,
    kind=st.sampled_from((Kind.REBOOT, Kind.REDEPLOY, Kind.PREEMPT, Kind.LIVE_MIGRATION)),
    not_before=st.none() | moments,
    ids=st.sampled_from(((), ("A1",), ("B2",))),
    sources=st.sampled_from(
        (("imds",), ("request",), ("condition:VMEventScheduled",), ("condition:VMEventScheduled", "imds"))
    ),
)


@st.composite
def records(draw: st.DrawFn, uid: str) -> Record:
    """Any record that the program itself could have left behind."""
    return Record(uid).with_case("default", draw(cases()), NOW)


@st.composite
def cases(draw: st.DrawFn) -> CaseRecord:
    """Anything that one profile could remember of a node."""
    state = draw(st.sampled_from(tuple(State)))
    dismissed = tuple(draw(st.lists(known_events, max_size=1)))
    if state is State.OPERATIONAL:
        return CaseRecord(dismissed=dismissed)
    since = draw(past)
    # One event is on record once.
    several = st.lists(
        known_events, min_size=1, max_size=2, unique_by=lambda one: (one.kind, one.ids or one.not_before)
    )
    events = tuple(draw(several))
    if state is State.REQUIRED:
        return CaseRecord(state, since, events, dismissed=dismissed)
    done = draw(st.none() | st.just(NOW))
    return CaseRecord(
        state=state,
        since=since,
        events=events,
        cordon=draw(st.sampled_from((Cordon.OURS, Cordon.OURS, Cordon.FOREIGN))),
        drain=DrainRecord(since, draw(st.integers(1, 3)), done),
        quiet_since=draw(st.none() | past),
        dismissed=dismissed,
        self_service=draw(st.none() | st.builds(SelfService, past, st.integers(1, 3), st.just("boot-1"))),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str, *, fresh: bool = False) -> Node:
    """A node with whatever the sources and we have written on it; a `fresh` one was never in our hands."""
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    conditions: list[Condition] = []
    spoken = draw(st.integers(0, 7))
    if spoken & 1:
        annotations[REQUEST] = draw(requests())
    instance = int(name.removeprefix("n"))
    if spoken & 2:
        told = draw(st.lists(imds_events(), max_size=2))
        annotations[IMDS] = builders.published(*told, vm=builders.vm_name(instance))
    if spoken & 4 or draw(st.booleans()):
        conditions.append(draw(event_conditions()))
    uid = f"uid-{name}"
    cordoned = draw(st.integers(0, 5)) == 0
    if not fresh and draw(st.booleans()):
        held = draw(records(uid))
        if not held.empty:
            annotations[RECORD] = to_annotation(held)
        if held.worst is not State.OPERATIONAL:
            labels[STATE] = held.worst.value
        if held.worst is State.IN_MAINTENANCE:
            cordoned = draw(st.integers(0, 4)) > 0
        if draw(st.integers(0, 9)) == 0:
            annotations[RECORD] = draw(st.sampled_from(("{", '{"version":3}', "null", "[]")))
    odd = draw(st.integers(0, 15))
    if odd == 0:
        labels[KARPENTER_LABEL] = "spot"
    elif odd == 1:
        labels[f"{PREFIX}/ignore"] = "true"
    elif odd == 2:
        labels[MECHANIC_LABEL] = "true"
        cordoned = True
    elif odd == 3:
        labels[UPGRADE_STATUS_LABEL] = "Quarantined"
        cordoned = True
    bare = builders.node(
        name,
        uid=uid,
        zone=draw(st.sampled_from(("", "1", "2"))),
        pool=draw(st.sampled_from(("batch", "web"))),
        labels=labels,
        annotations=annotations,
        unschedulable=cordoned,
        ready=draw(st.integers(0, 7)) > 0,
        ready_since=draw(st.none() | past),
        conditions=tuple(conditions),
        taints=draw(st.sampled_from(((), (), (), (), (), (AUTOSCALER_TAINT,), (REMEDIATOR_TAINT,)))),
    )
    return builders.on_vm(bare, instance)


@st.composite
def pods(draw: st.DrawFn, on: str) -> tuple[Pod, ...]:
    """Some pods of one node: ordinary ones, and those that are kept, skipped or going."""
    return tuple(
        builders.pod(
            f"{on}-{number}",
            on,
            owner=draw(st.sampled_from(("ReplicaSet", "ReplicaSet", "DaemonSet", ""))),
            empty_dir=draw(st.integers(0, 4)) == 0,
            deleting_until=draw(st.sampled_from((None, None, None, NOW))),
        )
        for number in range(draw(st.integers(0, 3)))
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


@st.composite
def worlds(draw: st.DrawFn, *, most: int = 5, fresh: bool = False) -> World:
    """A simulated world whose cluster is in any state."""
    names = [f"n{number}" for number in range(draw(st.integers(1, most)))]
    world = world_of(
        [draw(nodes(name, fresh=fresh)) for name in names],
        [pod for name in names for pod in draw(pods(name))],
    )
    world.cluster.agents = draw(_agents)
    world.cluster.remediator = draw(_remediators)
    world.cluster.ledger = Ledger(draw(st.none() | past))
    world.cluster.maintenances = {} if draw(st.booleans()) else None
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
def policies(draw: st.DrawFn, *, mode: str = "") -> Settings:
    """Settings as a file would give them."""
    lines = [
        draw(st.sampled_from(WINDOWS)),
        draw(st.sampled_from(NOT_ALLOWED)),
        f"budget: {{{draw(st.sampled_from(BUDGETS))}}}",
        f"events: {{{draw(st.sampled_from(MEANINGS))}}}",
        draw(st.sampled_from(("", "", "adopt: [mechanic]"))),
        draw(st.sampled_from(("", "", "coexist: {aksRemediator: Leave}"))),
        draw(st.sampled_from(("", "", "drain: {maxConcurrentNodes: 1}"))),
        draw(st.sampled_from(("", "uncordon: {settle: 5m}"))),
        f"publish: [{', '.join(draw(st.sampled_from(((), (), SIGNS[:1], SIGNS[1:], SIGNS))))}]",
    ]
    chosen = mode or draw(st.sampled_from(("Enforce", "Enforce", "Enforce", "Finish")))
    return builders.settings("\n".join(line for line in lines if line), mode=chosen)


signals = st.builds(
    Signal,
    source=st.sampled_from(("imds", "request", "condition:VMEventScheduled")),
    kind=st.sampled_from(tuple(Kind)),
    status=st.sampled_from(tuple(Status)),
    not_before=st.none() | moments,
    duration=st.none() | st.integers(0, 600).map(lambda count: timedelta(seconds=count)),
    id=st.sampled_from(("", "A1", "a1", "B2")),
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
"""What somebody may have written where a document was expected."""
