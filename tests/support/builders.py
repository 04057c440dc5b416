"""Values with good defaults, so that a test names only what it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from reconciler.model.clocks import Disagreement
from reconciler.model.drains import DrainProgress
from reconciler.model.event import Answer, Cause, Initiator, Kind, MaintenanceEvent, Reading, Signal, Status
from reconciler.model.instructions import Permission, Word, permission_text
from reconciler.model.keys import keys_of
from reconciler.model.machine import Machine
from reconciler.model.node import (
    SCALE_DOWN_ANNOTATION,
    SCALE_DOWN_REASON_ANNOTATION,
    ZONE_LABEL,
    Condition,
    Node,
    Taint,
    Wanted,
)
from reconciler.model.permission_kinds import permission_kinds
from reconciler.model.plan import CheckAnswer, JudgedEvent, NodePlan, Plan
from reconciler.model.pod import Owner, Pod, PodSpec
from reconciler.model.record import (
    CaseRecord,
    Claim,
    ClaimKind,
    Cordon,
    DrainRecord,
    KnownEvent,
    Record,
    State,
    from_annotation,
    record_of,
    shown_labels,
    to_annotation,
)
from reconciler.model.snapshot import Agents, Ledger, ReadAhead, ReadForSettings, Remediator, Self, Snapshot
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.passes.decide import decide
from reconciler.profiles.case import CaseView
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.endings import Means
from reconciler.profiles.judging import judge
from reconciler.profiles.situation import Situation
from reconciler.run import PARTS
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.starts.budget import count_places

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)  # a Saturday
STALE_AFTER = timedelta(minutes=15)
LONG_AGO = NOW - timedelta(days=3)
PREFIX = "node-maintenance.dev"
REQUEST = f"{PREFIX}/request"
IMDS = f"{PREFIX}/imds"
RECORD = f"{PREFIX}/record"
STATE = f"{PREFIX}/state"
WHY = f"{PREFIX}/why"
UID = f"{PREFIX}/uid"

ACKNOWLEDGE = f"{PREFIX}/acknowledge"
SCALE_SET = "aks-np-123-vmss"

_AGENTS = Agents(installed=True)
_NO_REMEDIATOR = Remediator()
_NEVER_STARTED = Ledger()


def approval_text(
    word: Word, *events: KnownEvent, case: datetime | None = None, workflows: bool = False
) -> str:
    """The annotation of an approval, for tests of others than the feature that brings it."""
    approved = permission_kinds()["approved"]
    return permission_text(Permission(word, case, events, kind=approved, for_profiles=workflows))


DRAIN_NOW = '{"kind":"Reboot"}'
"""A request that no window and no deadline keeps waiting where no window is set."""


def minutes(count: float) -> timedelta:
    """So many minutes."""
    return timedelta(minutes=count)


@lru_cache(maxsize=512)
def settings(text: str = "", *, mode: str = "Enforce") -> Settings:
    """Settings as a file with this text gives them; half of the fleet may be out of service."""
    lines = [f"mode: {mode}"] if "mode:" not in text else []
    if "budget:" not in text:
        lines.append("budget: {maxUnavailable: 50%}")
    return parse_settings("\n".join((*lines, text)), "maintenance.yaml")


def condition(
    kind: str, status: str = "True", message: str = "", *, at: datetime | None = None, reason: str = ""
) -> Condition:
    """A node condition that was written just now."""
    return Condition(kind, status, reason, message, heartbeat=at or NOW, transition=LONG_AGO)


def quiet(at: datetime | None = None) -> Condition:
    """AKS's condition when nothing is scheduled."""
    return condition("VMEventScheduled", "False", "VM has no scheduled event", at=at)


def node(
    name: str = "a",
    *,
    uid: str | None = None,
    zone: str = "",
    pool: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    unschedulable: bool = False,
    ready: bool = True,
    ready_since: datetime | None = LONG_AGO,
    conditions: tuple[Condition, ...] = (),
    taints: tuple[str, ...] = (),
) -> Node:
    """A healthy node that no source has anything to say about."""
    reported = dict(labels or {})
    if zone:
        reported[ZONE_LABEL] = zone
    if pool:
        reported["agentpool"] = pool
    kubelet = Condition("Ready", "True" if ready else "False", transition=ready_since)
    return Node(
        name=name,
        uid=uid or f"uid-{name}",
        resource_version="1",
        labels=reported,
        annotations=dict(annotations or {}),
        unschedulable=unschedulable,
        conditions=(kubelet, *conditions),
        taints=tuple(Taint(key, effect="NoSchedule") for key in taints),
    )


IN_UPGRADE = {SCALE_DOWN_ANNOTATION: "true", SCALE_DOWN_REASON_ANNOTATION: "upgrade"}
"""The annotations of a node that AKS upgrades."""


def read_of(node: Node, wanted: Wanted) -> Node:
    """What a pass that wants these parts reads of a node."""
    return replace(
        node,
        labels={key: value for key, value in node.labels.items() if wanted.keeps_label(key)},
        annotations={
            key: value
            for key, value in node.annotations.items()
            if key in wanted.annotations or key.startswith(f"{wanted.annotation_prefix}/")
        },
        conditions=tuple(each for each in node.conditions if each.type in wanted.conditions),
    )


def vm_name(instance: int) -> str:
    """A VM of the one scale set, as scheduled events name it."""
    return f"{SCALE_SET}_{instance}"


def on_vm(one: Node, instance: int) -> Node:
    """The node on that VM of the scale set."""
    group = "azure:///subscriptions/s/resourceGroups/mc_shop/providers/Microsoft.Compute"
    place = f"{group}/virtualMachineScaleSets/{SCALE_SET}/virtualMachines/{instance}"
    return replace(one, provider_id=place)


def reports_start(*sources: str, condition: str = "") -> bool:
    """Whether any of these sources, by the names of their readings, reports the start of an event."""
    return not condition and not set(sources) <= _WITHOUT_START


_WITHOUT_START = {
    name
    for source in PARTS.sources.all
    if not source.reports_start
    for name in source.reading_names(Settings())
}


def signal(
    kind: Kind = Kind.REBOOT,
    *,
    source: str = "imds",
    status: Status = Status.SCHEDULED,
    not_before: datetime | None = None,
    duration: timedelta | None = None,
    event_id: str = "",
    description: str = "",
    initiator: Initiator | None = None,
    resources: tuple[str, ...] = (),
    date_unreadable: bool = False,
) -> Signal:
    """What one source says."""
    return Signal(
        source=source,
        kind=kind,
        status=status,
        not_before=not_before,
        duration=duration,
        id=event_id,
        description=description,
        initiator=initiator,
        resources=resources,
        date_unreadable=date_unreadable,
        reports_start=reports_start(source),
    )


def reading(
    *signals: Signal,
    source: str = "",
    unknown: str = "",
    as_of: datetime | None = None,
    installed: bool = True,
) -> Reading:
    """One source's answer: events where signals are given, unknown where a reason is, else none."""
    source = source or (signals[0].source if signals else "imds")
    if unknown:
        return Reading(source, Answer.UNKNOWN, because=unknown, as_of=as_of, installed=installed)
    return Reading(
        source, Answer.EVENT if signals else Answer.NO_EVENT, signals, as_of=as_of, stale_after=STALE_AFTER
    )


def event(
    kind: Kind = Kind.REBOOT,
    *,
    node: str = "a",
    status: Status = Status.SCHEDULED,
    not_before: datetime | None = None,
    duration: timedelta | None = None,
    ids: tuple[str, ...] = (),
    sources: tuple[str, ...] = ("imds",),
    initiator: Initiator | None = Initiator.PLATFORM,
    date_unreadable: bool = False,
    condition: str = "",
    since: datetime | None = None,
    description: str = "",
) -> MaintenanceEvent:
    """A joined event."""
    return MaintenanceEvent(
        node=node,
        kind=kind,
        status=status,
        not_before=not_before,
        duration=duration,
        ids=ids,
        sources=sources,
        cause=Cause(initiator, description),
        date_unreadable=date_unreadable,
        condition=condition,
        since=since,
        reports_start=reports_start(*sources, condition=condition),
    )


def pod(
    name: str = "web-1",
    on: str = "a",
    *,
    namespace: str = "shop",
    owner: str = "ReplicaSet",
    empty_dir: bool = False,
    deleting_until: datetime | None = None,
) -> Pod:
    """A running pod of a ReplicaSet, which would create it again; with an empty `owner` nothing would."""
    return Pod(
        namespace=namespace,
        name=name,
        uid=f"uid-{namespace}-{name}",
        node=on,
        owner=Owner(owner, "owner") if owner else None,
        phase="Running",
        ready=True,
        spec=PodSpec(empty_dir=empty_dir),
        deleting_until=deleting_until,
    )


def known(
    kind: Kind = Kind.REBOOT,
    *,
    not_before: datetime | None = None,
    ids: tuple[str, ...] = (),
    sources: tuple[str, ...] = ("imds",),
    condition: str = "",
) -> KnownEvent:
    """An event as a record knows it."""
    reports = reports_start(*sources, condition=condition)
    return KnownEvent(kind, not_before, ids, sources, condition, reports)


def record(
    state: State = State.IN_MAINTENANCE,
    *,
    since: datetime | None = None,
    events: tuple[KnownEvent, ...] | None = None,
    cordon: Cordon = Cordon.OURS,
    drain: DrainRecord | None = None,
    quiet_since: datetime | None = None,
    dismissed: tuple[KnownEvent, ...] = (),
) -> CaseRecord:
    """What the default profile remembers of a node in maintenance, drained a while ago."""
    began = since or NOW - minutes(10)
    held = state is State.IN_MAINTENANCE
    return CaseRecord(
        state=state,
        since=began if state is not State.OPERATIONAL else None,
        events=(known(),) if events is None else events,
        cordon=cordon if held else Cordon.NONE,
        drain=drain or (DrainRecord(began, 1, began + minutes(1)) if held else None),
        quiet_since=quiet_since,
        dismissed=dismissed,
    )


def remembered(held: CaseRecord, uid: str = "uid-a", *, claimed_by: str = "") -> Record:
    """The record of a node of which only the default profile knows something, or which a person drains."""
    found = Record(uid).with_case("default", held, held.since or NOW)
    if not claimed_by:
        return found
    person = Claim(ClaimKind.PERSON, claimed_by)
    return found.cordoned(Cordon.OURS, person, NOW).drained(DrainRecord(NOW), person)


def case_of(node: Node) -> CaseRecord:
    """What the default profile remembers of a node; the record has to be there."""
    found = from_annotation(node.annotations[RECORD], node.uid)
    assert found is not None
    return found.case("default")


def held_node(
    case: CaseRecord | Record,
    name: str = "a",
    *,
    uid: str | None = None,
    claimed_by: str = "",
    zone: str = "",
    pool: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    unschedulable: bool | None = None,
    taints: tuple[str, ...] = (),
) -> Node:
    """A node that carries this record, its labels and its cordon."""
    held = case if isinstance(case, Record) else remembered(case, uid or f"uid-{name}", claimed_by=claimed_by)
    return node(
        name,
        uid=held.uid,
        zone=zone,
        pool=pool,
        labels={**(labels or {}), **shown_labels(held, keys_of(PREFIX))},
        annotations={RECORD: to_annotation(held), **(annotations or {})},
        unschedulable=held.worst is State.IN_MAINTENANCE if unschedulable is None else unschedulable,
        taints=taints,
    )


def published(*events: Mapping[str, object], vm: str = "vm") -> str:
    """The annotation of the node agent, for events in IMDS's own words."""
    full = [{"Resources": [vm], "ResourceType": "VirtualMachine", **one} for one in events]
    return json.dumps({"version": 1, "vm": vm, "events": full})


def snapshot(
    *nodes: Node,
    readings: Mapping[str, tuple[Reading, ...]] | None = None,
    remediator: Remediator = _NO_REMEDIATOR,
    agents: Agents = _AGENTS,
    ledger: Ledger = _NEVER_STARTED,
    skew: timedelta = timedelta(),
    prefix: str = PREFIX,
    pods: Mapping[str, tuple[Pod, ...]] | None = None,
    drains: Mapping[str, DrainProgress] | None = None,
    own_node: str | None = None,
) -> Snapshot:
    """The snapshot of one pass; a node without readings has an IMDS without events.

    Whether drains can end was read: there are no budgets, and no pods but these.
    """
    nothing = (
        reading(source="imds"),
        reading(source="condition:VMEventScheduled"),
        reading(source="request"),
    )
    given = readings or {}
    return Snapshot(
        nodes=nodes,
        readings={one.name: given.get(one.name, nothing) for one in nodes},
        records={one.name: found for one in nodes if (found := record_of(one, prefix)) is not None},
        remediator=remediator,
        agents=agents,
        ledger=ledger,
        disagreement=Disagreement(-skew) if skew else None,
        pods=pods or {},
        drains=drains or {},
        itself=Self(own_node),
        for_settings=ReadForSettings(
            ahead=ReadAhead({one.name: (pods or {}).get(one.name, ()) for one in nodes}, budgets=())
        ),
    )


def with_machines(seen: Snapshot, machines: Mapping[str, Machine]) -> Snapshot:
    """The snapshot with the machines of nodes, by name."""
    return replace(seen, for_settings=replace(seen.for_settings, machines=machines))


def reported(*signals: Signal) -> tuple[Reading, ...]:
    """Readings of one node where these signals are all that the three sources say."""
    found: dict[str, list[Signal]] = {"imds": [], "condition:VMEventScheduled": [], "request": []}
    for one in signals:
        found.setdefault(one.source, []).append(one)
    return tuple(reading(*said, source=source) for source, said in found.items())


def planned(seen: Snapshot, chosen: Settings | None = None, now: datetime = NOW) -> Plan:
    """Assess and decide."""
    chosen = chosen or settings()
    return decide(seen, assess(seen, now), chosen, now, PARTS)


def plan_of(plan: Plan, name: str = "a") -> NodePlan:
    """The plan of one node, which has to be in it."""
    return next(one for one in plan.nodes if one.node == name)


def codes(plan: NodePlan) -> set[str]:
    """The checks that hold a node."""
    return {hold.code for hold in plan.holds}


def judged(
    one: MaintenanceEvent,
    chosen: Settings | None = None,
    *,
    on: Node | None = None,
    remediator: Remediator = _NO_REMEDIATOR,
    now: datetime = NOW,
    notice: bool = False,
) -> JudgedEvent:
    """Judge an event on a node, a plain one by default."""
    return judge(one, on or node(), chosen or settings(), remediator, now, Means(notice, ends=PARTS.ends))


def situation(
    on: Node | None = None,
    *events: JudgedEvent,
    chosen: Settings | None = None,
    fleet: tuple[Node, ...] = (),
    held: CaseRecord | None = None,
    case: CaseView | None = None,
    ledger: Ledger = _NEVER_STARTED,
    now: datetime = NOW,
) -> Situation:
    """The input of a check or trigger for one node; `structs.replace` adds to it."""
    on = on or node()
    chosen = chosen or settings()
    return Situation(
        node=on,
        record=held or CaseRecord(),
        judged=events,
        case=case or CaseView(tuple(one for one in events if one.asks)),
        settings=chosen,
        places=count_places(fleet or (on,), {}, chosen.budget, now),
        ledger=ledger,
        now=now,
    )


def ask(name: str, told_of: Situation) -> CheckAnswer:
    """Ask one of the built-in checks; its answer bears its name."""
    answer = CHECKS[name](told_of)
    assert answer.name == name
    return answer
