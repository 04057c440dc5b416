"""Azure Resource Manager as a source: reboots that Azure plans weeks ahead, from `maintenanceRedeployStatus`.

ARM shows only maintenance that needs a restart (azure-compute-docs, maintenance-and-updates.md). Freezes,
live migrations, and the notice of fifteen minutes before any event come from the scheduled events. The kind
is Redeploy, not Reboot: if the self-service offer is accepted, Azure moves the VM to a host that is already
updated, and the temporary disk is lost. The kind is the same without the offer, because a changed kind would
be another event. Azure gives no id, so the date distinguishes events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct
from pydantic import Field, model_validator

from reconciler.calendar.values import format_duration
from reconciler.model import limits
from reconciler.model.event import Initiator, Kind, PlatformPlan, Reading, Signal, Status, WaitForNotice
from reconciler.model.holds import NOBODY
from reconciler.model.machine import Scope, Vm, platform, vm_of
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Node
from reconciler.model.outcome import ActionKind
from reconciler.model.plan import Notice
from reconciler.model.polling import Listing
from reconciler.model.record import Asked, Record
from reconciler.model.tasks import Clients
from reconciler.passes.plugin import SourceContext
from reconciler.passes.polled import PolledSource, with_settings
from reconciler.profiles.endings import why_not_asked
from reconciler.profiles.situation import Offer, Request, Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed
from reconciler.settings.fields import Duration, Flag, Section
from reconciler.settings.foreign import has_key, value_of
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.schema import Settings, SourceSection


class AzureCloud(StrEnum):
    """The Azure clouds."""

    PUBLIC = "Public"
    CHINA = "China"
    US_GOVERNMENT = "USGovernment"


# Azure limits calls per minute, and a pass runs about once a minute.
_OFTEN = timedelta(minutes=1)


class ArmSource(Section):
    """Azure Resource Manager (ARM): reboots that Azure plans weeks ahead."""

    enabled: Flag = Field(
        default=False, description="Whether it is queried, with an identity that may read VMs."
    )
    every: Duration = Field(default=timedelta(minutes=15), description="How often, at least 1m.")
    cloud: AzureCloud = Field(default=AzureCloud.PUBLIC, description="The Azure cloud of the subscription.")
    ahead: Duration | None = Field(
        default=None,
        description="How long before Azure's window a drain may start. It is at least the `leadTime`, "
        "and more if windows or freezes end before the deadline. Default: "
        "`events.Redeploy.ahead` before the latest start.",
    )
    wait_for_notice: WaitForNotice = Field(
        default=WaitForNotice.AUTO,
        description="Whether the drain for planned maintenance waits for the scheduled event that "
        "Azure sends shortly before. Auto: it waits on nodes on which a source reports "
        "such events (the agent, or `VMEventScheduled`); on others, the maintenance is "
        "expected at the beginning of Azure's window. Always: it waits on all nodes. "
        "Never: it waits on none.",
    )
    self_service: Flag = Field(
        default=False,
        description="Whether self-service maintenance is started, on a drained node inside `windows`. Read "
        "docs/azure.md#7-self-service-maintenance first.",
    )

    @model_validator(mode="after")
    def _not_too_often(self) -> ArmSource:
        found = []
        if self.every < _OFTEN:
            found.append(Mistake(("every",), "is shorter than 1m; ARM limits calls per minute"))
        if self.self_service and not self.enabled:
            found.append(Mistake(("selfService",), "has no effect while sources.arm.enabled is false"))
        if found:
            raise Mistakes(tuple(found))
        return self


SECTION: SourceSection[ArmSource] = SourceSection(
    key="arm",
    type=ArmSource,
    default=ArmSource(),
    description="Azure Resource Manager: reboots planned weeks ahead. See docs/azure.md.",
)

SECTIONS = (SECTION,)


SOURCE = "arm"

AZURE = "Azure"
"""Who is asked to do its maintenance, in words."""

_COMPLETED = "maintenancecompleted"
_STATUS = "maintenanceRedeployStatus"
_FIELDS = (
    "isCustomerInitiatedMaintenanceAllowed", "lastOperationResultCode", "lastOperationMessage",
    "preMaintenanceWindowStartTime", "preMaintenanceWindowEndTime", "maintenanceWindowStartTime",
    "maintenanceWindowEndTime",
)  # fmt: skip


class Planned(Struct, frozen=True):
    """Azure's `maintenanceRedeployStatus` of one VM: a reboot planned weeks ahead. Moments are UTC.

    `offered` is whether Azure lets us start it ourselves now; the self-service window lasts from
    `offer_start` to `offer_end`, the scheduled one, in which Azure does it, from `start` to `end`. `result`
    is the last operation's code, empty if there is none.
    """

    offered: bool = False
    offer_start: datetime | None = None
    offer_end: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    result: str = ""


def listing(scope: Scope, documents: Iterable[Mapping[str, object]]) -> Listing[Scope, Planned]:
    """Return what a list of VMs says, each as ARM's JSON has it.

    The list of a scale set has the instance view, in which a missing status means no maintenance. The list of
    a subscription has the run-time status only, and no document of Azure says that the maintenance is a part
    of it. So a VM there is `silent` unless it has the field.
    """
    seen: set[str] = set()
    silent: set[str] = set()
    planned: list[tuple[str, Planned]] = []
    for document in documents:
        name = _name(scope, document)
        view = _mapping(value_of(_mapping(value_of(document, "properties")), "instanceView"))
        if not name:
            continue
        if not scope.scale_set and not has_key(view, _STATUS):
            silent.add(name)
            continue
        if not view:
            continue
        try:
            found = _planned(_mapping(value_of(view, _STATUS)))
        except ValueError:
            # Not in `seen`, because what can't be read is unknown.
            continue
        seen.add(name)
        if found is not None:
            planned.append((name, found))
    found_here = tuple(sorted(planned, key=lambda pair: pair[0]))
    return Listing(scope, found_here, frozenset(seen), silent=frozenset(silent - seen))


def one_vm(scope: Scope, view: Mapping[str, object]) -> Listing[Scope, Planned]:
    """Return what the instance view of one VM says, as ARM's JSON has it.

    No status, null, or an empty one means no maintenance. Raises ValueError if the status is invalid.
    """
    name = f"{scope.group}/{scope.vm}"
    found = _planned(_mapping(value_of(view, _STATUS)))
    return Listing(scope, ((name, found),) if found is not None else (), frozenset({name}))


def _name(scope: Scope, document: Mapping[str, object]) -> str:
    if scope.scale_set:
        return str(value_of(document, "instanceId") or "").casefold()
    found = vm_of(f"azure://{value_of(document, 'id') or ''}")
    return found.name if found is not None and found.scope == scope else ""


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _planned(status: Mapping[str, object]) -> Planned | None:
    """Parse a status. None: it is empty, or its maintenance is done. Raises ValueError if it is invalid."""
    given = [key for key, value in status.items() if value is not None]
    if given and not any(has_key(status, key) for key in _FIELDS):
        raise ValueError(f"{_STATUS} has no known key, but {limits.excerpt(given[0])}")
    allowed = value_of(status, "isCustomerInitiatedMaintenanceAllowed")
    if not isinstance(allowed, bool | None):
        raise ValueError(f"isCustomerInitiatedMaintenanceAllowed is {limits.excerpt(allowed)}")
    result = limits.text(str(value_of(status, "lastOperationResultCode") or ""), limits.NAME)
    result = "" if result.casefold() == "none" else result
    found = Planned(
        offered=bool(allowed),
        offer_start=_moment(value_of(status, "preMaintenanceWindowStartTime")),
        offer_end=_moment(value_of(status, "preMaintenanceWindowEndTime")),
        start=_moment(value_of(status, "maintenanceWindowStartTime")),
        end=_moment(value_of(status, "maintenanceWindowEndTime")),
        result=result,
    )
    done = result.casefold() == _COMPLETED and not found.offered
    dated = found.start or found.end or found.offer_start or found.offer_end
    return None if done or not (found.offered or dated) else found


def _moment(value: object) -> datetime | None:
    # Azure writes the year 1 for a date that was never set.
    if value is None or value == "" or str(value).startswith("0001-"):
        return None
    moment = from_text(value.isoformat() if isinstance(value, datetime) else str(value))
    # Azure writes seven digits of a second; a record and the ledger keep none.
    return moment.replace(microsecond=0)


PERFORM_MAINTENANCE = ActionKind("perform maintenance", "ask Azure to do its maintenance now", most=1)


class PerformMaintenance(Struct, frozen=True):
    """Start the maintenance that the platform offers for one VM. It is a Task."""

    action: ClassVar[ActionKind] = PERFORM_MAINTENANCE

    node: str
    vm: Vm

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about."""
        return (SOURCE, self.action.name, self.node)

    def perform(self, clients: Clients) -> None:
        """Ask Azure; raises CloudError."""
        platform(SOURCE, clients).perform(self)


ATTEMPTS = 3
PAUSE = timedelta(minutes=10)
"""Between two attempts, times the number of attempts. A redeploy itself takes some minutes."""

PATIENCE = timedelta(hours=1)
"""How long after the last attempt the node waits for a boot and for the end of Azure's plan."""


def _due(situation: Situation) -> CheckResult:
    """Pass when the node is drained, the offer is valid, and no attempt is in progress."""
    refusal, until = _why_not_due(situation)
    if refusal:
        return failed(refusal, until, holds=refusal == why_not_asked(AZURE, situation.twin))
    return passed("Azure allows us to start it, and the node is drained")


def _why_not_due(situation: Situation) -> tuple[str, datetime | None]:
    """Return why not to ask Azure now, and until when. An empty reason: ask it."""
    record, now = situation.record, situation.now
    offered = [judged.after_drain.offered == AZURE for judged in situation.judged if judged.asks]
    if not any(offered):
        return "Azure offers no maintenance, or the settings do not use the offer", None
    if not all(offered):
        return "there is another event, so the platform is already working on the VM", None
    if vm_of(situation.node.provider_id) is None:
        return "the node's providerID is not Azure's", None
    if record.drain is None or record.drain.done is None:
        return "the node is not drained yet", None
    if situation.undrained:
        return "a drain for it may not start yet", None
    if refusal := why_not_asked(AZURE, situation.twin):
        return refusal, None
    asked = record.asked_by(SELF_SERVICE.name)
    if asked is None:
        return "", None
    if _has_booted(situation, asked):
        return "the node has booted since; waits until Azure no longer reports the plan", None
    if asked.attempts >= ATTEMPTS:
        return f"Azure was asked {ATTEMPTS} times", None
    again = asked.last + PAUSE * asked.attempts
    if now < again:
        return f"Azure was asked at {to_text(asked.last)}", again
    return "", None


def _has_booted(situation: Situation, asked: Asked) -> bool:
    boot_id = situation.node.boot_id
    return bool(asked.own and boot_id) and boot_id != asked.own


def _request(situation: Situation) -> Request | None:
    """Return the request to do the maintenance of the node's VM, with the boot ID before the first one."""
    vm, asked = vm_of(situation.node.provider_id), situation.record.asked_by(SELF_SERVICE.name)
    if vm is None:
        return None
    again = f" (attempt {asked.attempts + 1})" if asked is not None else ""
    notice = Notice("MaintenanceSelfService", f"asks Azure to do its maintenance now{again}")
    node = situation.node
    return Request(
        notice, PerformMaintenance(node.name, vm), own=asked.own if asked is not None else node.boot_id
    )


def _answered(situation: Situation) -> CheckResult:
    """Pass when no maintenance was requested, the node has booted since, or the request is long ago."""
    asked = situation.record.asked_by(SELF_SERVICE.name)
    if asked is None:
        return passed()
    request = f"asked Azure at {to_text(asked.last)} (attempt {asked.attempts})"
    if _has_booted(situation, asked):
        return passed(f"{request}, and the node has booted since")
    until = asked.last + PATIENCE
    if situation.now >= until:
        return passed(f"{request}, but the node did not boot")
    return failed(f"{request}; the node has not booted since", until)


def _refused(situation: Situation) -> CheckResult:
    """Pass when Azure still plans the maintenance, and there are no attempts left."""
    asked, case = situation.record.asked_by(SELF_SERVICE.name), situation.case
    if asked is None or not case.present or case.unknown:
        return failed("nothing has failed")
    if any(judged.event.plan is None for judged in case.present):
        return failed("there is a current event, which holds the node")
    until = asked.last + PATIENCE
    if situation.now < until:
        return failed("the last attempt may still succeed", until)
    if not _why_not_due(situation)[0]:
        return failed("there are attempts left")
    return passed(f"Azure still plans it {format_duration(PATIENCE)} after attempt {asked.attempts}")


SELF_SERVICE = Offer(
    "selfService",
    AZURE,
    _due,
    _request,
    actions=(PERFORM_MAINTENANCE,),
    who=f"{NOBODY} when Azure accepts the request",
    by_itself=True,
    answered=_answered,
    answers="Azure, which does the maintenance",
    refused=_refused,
)


class ArmPlans(PolledSource[Scope, Planned]):
    """Reboots that Azure plans weeks ahead.

    There is one list for each scale set, and one for all other VMs, each of which is queried alone if the
    list does not say whether it has maintenance.
    """

    name = SOURCE
    reports_start = True
    who = "the administrator of the cluster: may its identity read Azure? See docs/azure.md"
    client = "reconciler.sources.arm.client"
    fact = Planned
    offers: ClassVar[tuple[Offer, ...]] = (SELF_SERVICE,)

    def section(self, settings: Settings) -> ArmSource:
        """Return `sources.arm`."""
        return SECTION.of(settings)

    def changes_vms(self, settings: Settings) -> bool:
        """Whether it starts self-service maintenance."""
        return SECTION.of(settings).self_service

    def locate(self, node: Node) -> tuple[Scope, str] | None:
        """Return the list that contains the node's VM, or None for a node outside Azure."""
        vm = vm_of(node.provider_id)
        return None if vm is None else (vm.scope, vm.name)

    def limits(self, paused: Scope, scope: Scope) -> bool:
        """Whether both are of one subscription in one region."""
        return paused.limits(scope)

    def alone(self, scope: Scope, name: str) -> Scope:
        """Return the scope of one VM; its name is `group/name`."""
        group, _, vm = name.partition("/")
        return Scope(scope.subscription, group, vm=vm)

    def signals(self, name: str, facts: Sequence[Planned], now: datetime) -> tuple[Signal, ...]:
        """Return the planned maintenance of a VM, unless its time is over and nothing is offered.

        Azure may keep such a status forever, and the node would never be uncordoned.
        """
        return tuple(
            _signal(found, name) for found in facts if found.offered or found.end is None or found.end > now
        )

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return what ARM reports about the node, with the settings that apply to each plan."""
        section = self.section(context.settings)
        return tuple(
            with_settings(one, section.ahead, accept=section.self_service, waits=section.wait_for_notice)
            for one in super().read(node, context)
        )

    def follows(self, record: Record) -> bool:
        """Whether a maintenance that we started runs on the node."""
        return record.has_asked(SELF_SERVICE.name)

    def write_scope(self, scope: Scope) -> list[str]:
        """Return the parts of the scope."""
        return [scope.subscription, scope.group, scope.scale_set]

    def read_scope(self, document: list[str]) -> Scope:
        """Parse the parts of a scope."""
        subscription, group, scale_set = (str(part) for part in document)
        return Scope(subscription, group, scale_set)


SOURCES = (ArmPlans(),)


def _signal(found: Planned, name: str) -> Signal:
    words = ["planned maintenance with a restart"]
    if found.start or found.end:
        words.append(f"Azure does it between {_moment_text(found.start)} and {_moment_text(found.end)}")
    if found.offer_start or found.offer_end or found.offered:
        offer = f"self-service between {_moment_text(found.offer_start)} and {_moment_text(found.offer_end)}"
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
        plan=PlatformPlan(found.end, found.offered, found.offer_start, found.offer_end, AZURE),
    )


def _moment_text(moment: datetime | None) -> str:
    return to_text(moment) if moment else "an unknown time"
