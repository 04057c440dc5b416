"""Azure Resource Manager as a source: reboots that Azure plans weeks ahead, from `maintenanceRedeployStatus`.

Only maintenance that needs a restart stands there (azure-compute-docs, maintenance-and-updates.md); freezes
and live migrations, and the fifteen minutes' notice of everything, are the scheduled events' affair. The
kind is Redeploy, not Reboot: who takes the self-service offer has the VM moved to a host that was updated
before, and its temporary disk is lost; the event has the same kind whichever way it goes, since a kind that
changed would be another event. Azure gives no id, so events are told apart by their date.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from reconciler.model.azure import CloudMemory, Listing, Planned, Scope, ScopeAnswer, vm_of
from reconciler.model.event import Answer as Said
from reconciler.model.event import Initiator, Kind, PlatformPlan, Reading, Signal, Status
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Node

SOURCE = "arm"

FOLLOW = timedelta(minutes=2)
"""How often a scope is asked for while a maintenance that we started runs in it."""

RETRY = timedelta(minutes=5)
"""How soon a scope is asked for again after a failure, unless Azure wishes for more."""

SPARE = timedelta(minutes=1)
"""How soon a scope is asked for that was left out since few calls were left."""

_LONGEST_WAIT = timedelta(hours=6)
_COMPLETED = "maintenancecompleted"


def listing(scope: Scope, documents: Iterable[Mapping[str, object]]) -> Listing:
    """Return what a list of VMs says, each as ARM's JSON has it."""
    seen: set[str] = set()
    planned: list[tuple[str, Planned]] = []
    for document in documents:
        name = _name(scope, document)
        view = _mapping(_mapping(document.get("properties")).get("instanceView"))
        if not name or not view:
            continue
        try:
            found = _planned(_mapping(view.get("maintenanceRedeployStatus")))
        except ValueError:
            # Not seen: what can't be read is unknown, never nothing.
            continue
        seen.add(name)
        if found is not None:
            planned.append((name, found))
    return Listing(scope, tuple(sorted(planned, key=lambda pair: pair[0])), frozenset(seen))


def _name(scope: Scope, document: Mapping[str, object]) -> str:
    if scope.scale_set:
        return str(document.get("instanceId") or "").casefold()
    found = vm_of(f"azure://{document.get('id') or ''}")
    return found.name if found is not None and found.scope == scope else ""


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _planned(status: Mapping[str, object]) -> Planned | None:
    """Read a status; None where it is empty or its maintenance is done. ValueError for a broken one."""
    allowed = status.get("isCustomerInitiatedMaintenanceAllowed", False)
    if not isinstance(allowed, bool | None):
        raise ValueError(f"isCustomerInitiatedMaintenanceAllowed is {allowed!r}")
    result = str(status.get("lastOperationResultCode") or "")
    result = "" if result.casefold() == "none" else result
    found = Planned(
        offered=bool(allowed),
        offer_start=_moment(status.get("preMaintenanceWindowStartTime")),
        offer_end=_moment(status.get("preMaintenanceWindowEndTime")),
        start=_moment(status.get("maintenanceWindowStartTime")),
        end=_moment(status.get("maintenanceWindowEndTime")),
        result=result,
    )
    done = result.casefold() == _COMPLETED and not found.offered
    dated = found.start or found.end or found.offer_start or found.offer_end
    return None if done or not (found.offered or dated) else found


def _moment(value: object) -> datetime | None:
    # A date that was never set is the year 1 in Azure's language.
    if value is None or value == "" or str(value).startswith("0001-"):
        return None
    moment = from_text(value.isoformat() if isinstance(value, datetime) else str(value))
    # Azure writes seven digits of a second; a record and the ledger keep none.
    return moment.replace(microsecond=0)


def scopes(nodes: Iterable[Node]) -> dict[Scope, set[str]]:
    """Return the lists that answer for these nodes, with the names of their VMs in each."""
    found: dict[Scope, set[str]] = {}
    for node in nodes:
        vm = vm_of(node.provider_id)
        if vm is not None:
            found.setdefault(vm.scope, set()).add(vm.name)
    return found


def due(
    nodes: Iterable[Node], memory: CloudMemory, now: datetime, *, followed: Collection[str] = ()
) -> tuple[Scope, ...]:
    """Return what is to be asked for now; `followed` are the nodes on which a maintenance of ours runs."""
    nodes = tuple(nodes)
    if memory.not_before is not None and now < memory.not_before:
        return ()
    soon = scopes(node for node in nodes if node.name in followed)
    return tuple(scope for scope in sorted(scopes(nodes)) if _is_due(memory.of(scope), now, scope in soon))


def _is_due(answer: ScopeAnswer | None, now: datetime, followed: bool) -> bool:
    if answer is None or now >= answer.again:
        return True
    # A clock that was ahead when it was written must not silence us.
    if answer.asked > now + SPARE:
        return True
    return followed and not answer.problem and now >= answer.asked + FOLLOW


def remembered(
    memory: CloudMemory,
    listings: Collection[Listing],
    nodes: Iterable[Node],
    every: timedelta,
    now: datetime,
) -> CloudMemory:
    """Return what is in force once these lists have been asked for; without any, what was before."""
    if not listings:
        return memory
    now = now.replace(microsecond=0)
    expected = scopes(nodes)
    wishes = [one.wait for one in listings if one.wait is not None]
    patience = min(timedelta(seconds=max(wishes)), _LONGEST_WAIT) if wishes else None
    not_before = now + patience if patience else None
    fresh = {one.scope: one for one in listings}
    answers = []
    for scope in sorted(expected):
        before, told = memory.of(scope), fresh.get(scope)
        if told is not None:
            answers.append(_answer(told, before, expected[scope], every, now, not_before))
        elif before is not None:
            answers.append(before)
    return CloudMemory(tuple(answers), not_before)


def _answer(
    told: Listing,
    before: ScopeAnswer | None,
    expected: Collection[str],
    every: timedelta,
    now: datetime,
    not_before: datetime | None,
) -> ScopeAnswer:
    scope = told.scope
    if told.problem:
        again = max(now + min(every, RETRY), not_before or now)
        return ScopeAnswer(scope, now, again, problem=told.problem)
    if not told.asked:
        if before is not None and not before.problem:
            return ScopeAnswer(scope, before.asked, now + SPARE, before.planned, before.unseen)
        return ScopeAnswer(scope, now, now + SPARE, problem="few calls are left: it is asked a minute later")
    ours = tuple(pair for pair in told.planned if pair[0] in expected)
    unseen = tuple(sorted(set(expected) - told.seen))
    return ScopeAnswer(scope, now, now + every, ours, unseen)


def read(node: Node, memory: CloudMemory, now: datetime) -> Reading | None:
    """Return what ARM says of the node's VM, None where the node is not Azure's."""
    vm = vm_of(node.provider_id)
    if vm is None:
        return None
    answer = memory.of(vm.scope)
    if answer is None:
        return _unknown(f"{vm.scope} has not been asked for yet")
    if answer.problem:
        return _unknown(answer.problem)
    if now >= answer.again:
        patience = f"; asked again at {to_text(memory.not_before)}" if memory.not_before else ""
        return _unknown(f"the last answer for {vm.scope} is of {to_text(answer.asked)}{patience}")
    if vm.name in answer.unseen:
        return _unknown(f"the list of {vm.scope} does not tell of {vm.name}")
    found = next((planned for name, planned in answer.planned if name == vm.name), None)
    # Where Azure leaves a status whose time is long over, nobody would ever get the node back.
    if found is None or (found.end is not None and found.end <= now and not found.offered):
        return Reading(SOURCE, Said.NO_EVENT)
    return Reading(SOURCE, Said.EVENT, (_signal(found, vm.name),))


def _unknown(because: str) -> Reading:
    return Reading(SOURCE, Said.UNKNOWN, because=because)


def _signal(found: Planned, name: str) -> Signal:
    words = ["planned maintenance with a restart"]
    if found.start or found.end:
        words.append(f"Azure does it between {_told(found.start)} and {_told(found.end)}")
    if found.offer_start or found.offer_end or found.offered:
        offer = f"self-service between {_told(found.offer_start)} and {_told(found.offer_end)}"
        words.append(offer if found.offered else f"{offer}, not allowed now")
    if found.result:
        words.append(f"last operation {found.result}")
    return Signal(
        SOURCE,
        Kind.REDEPLOY,
        Status.SCHEDULED,
        not_before=found.start,
        description="; ".join(words),
        initiator=Initiator.PLATFORM,
        resources=(name,),
        plan=PlatformPlan(found.end, found.offered, found.offer_start, found.offer_end),
    )


def _told(moment: datetime | None) -> str:
    return to_text(moment) if moment else "a time not told"
