"""What would happen if every node had to go now: findings for each workload."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from reconciler.model.content import SettingsVersion
from reconciler.model.problems import Unseen


class Severity(StrEnum):
    """What a finding means for a drain, the worst first."""

    BLOCKS = "blocks"
    """A drain would not end."""

    OUTAGE = "outage"
    """A drain would end, and the pods are down until the node is back, or lost."""

    NOTICE = "notice"
    """A drain would end, and the pods run again soon."""

    @property
    def rank(self) -> int:
        """The place in the order, from 0 for the worst."""
        return tuple(Severity).index(self)


class FindingCode(StrEnum):
    """What was found. `docs/planning.md` describes each."""

    BUDGET_NEVER = "budgetNever"
    BUDGET_NOW = "budgetNow"
    BUDGET_UNCOUNTED = "budgetUncounted"
    BUDGET_NO_ROOM = "budgetNoRoom"
    TWO_BUDGETS = "twoBudgets"
    TERMINATING = "terminating"
    WEBHOOK = "webhook"
    EMPTY_DIR = "emptyDir"
    UNMANAGED = "unmanaged"
    SKIPPED = "skipped"
    NO_ROOM = "noRoom"
    VOLUME_NODE = "volumeNode"
    VOLUME_ZONE = "volumeZone"
    SINGLETON = "singleton"
    WAITS = "waits"
    DAEMON_SET = "daemonSet"


class Workload(Struct, frozen=True, order=True):
    """The top controller of pods, as far as names show it; an empty `kind` is all pods of no controller."""

    namespace: str
    kind: str
    name: str


class Finding(Struct, frozen=True):
    """One finding about some pods of a workload.

    `pods` and `nodes` are sorted names, `nodes` those on which the pods are. `about` are the objects that
    cause it: PodDisruptionBudgets as `namespace/name`, or a webhook.
    """

    code: FindingCode
    severity: Severity
    because: str
    remedy: str
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    about: tuple[str, ...] = ()


class WorkloadFindings(Struct, frozen=True):
    """The findings about one workload, the worst first; there is at least one."""

    workload: Workload
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """The worst severity of its findings."""
        return self.findings[0].severity


class PeopleCode(StrEnum):
    """How people keep a drain from its begin."""

    HOLD = "hold"
    DEFERRAL = "deferral"
    APPROVAL = "approval"


class KeptByPeople(Struct, frozen=True):
    """Why a person keeps these nodes, sorted by name, from a drain; `until` (UTC) is None without an end."""

    code: PeopleCode
    because: str
    remedy: str
    until: datetime | None
    nodes: tuple[str, ...]


class WebhookRefusal(Struct, frozen=True):
    """The admission webhook or policy `webhook` refused the dry-run eviction of a pod, or gave no answer.

    `reached` is False if the API server could not call the webhook, and therefore refuses.
    """

    namespace: str
    pod: str
    webhook: str
    message: str
    reached: bool = True


class WebhookAnswers(Struct, frozen=True):
    """The answers to dry-run evictions: `asked` of them, `left` not requested, `silent` without an answer.

    `needs` is the permission that is missing, `because` the answer of the server about it.
    """

    asked: int = 0
    left: int = 0
    silent: int = 0
    refusals: tuple[WebhookRefusal, ...] = ()
    needs: str = ""
    because: str = ""


class Readiness(Struct, frozen=True):
    """The whole answer.

    `nodes` and `pods` are how many were judged, `blocked` the names of the nodes that would not drain.
    `kind` is the kind of event that was assumed. `unsure` says that a read failed without which nobody knows
    whether a drain would end. `people` is what keeps drains from their begin, which is no finding about a
    workload. `now` is UTC, for people it is shown in `time_zone`.
    """

    now: datetime
    kind: str
    nodes: int
    pods: int
    blocked: tuple[str, ...]
    workloads: tuple[WorkloadFindings, ...]
    notes: tuple[str, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    unsure: bool = False
    time_zone: str = "UTC"
    settings: SettingsVersion | None = None
    people: tuple[KeptByPeople, ...] = ()

    @property
    def stops(self) -> bool:
        """Whether something would stop a drain."""
        return bool(self.blocked)


class FindingRow(Struct, frozen=True):
    """A finding about a workload: how bad it is, where its pods are, why, and what helps."""

    title: str
    severity: str
    place: str
    because: str
    remedy: str


class ReadinessPart(Struct, frozen=True):
    """The summary, what was judged and when, what could not be seen, and the worst findings.

    `rest` says how many findings are left out, empty for none. A large cluster has tens of thousands of
    findings, so a process keeps this part and not all of them.
    """

    headline: str
    assumption: str
    remarks: tuple[str, ...]
    rows: tuple[FindingRow, ...]
    rest: str = ""


class KnownReadiness(Struct, frozen=True):
    """Readiness as far as it is known. `note` says why there is none, or no newer one; else it is empty."""

    part: ReadinessPart | None = None
    note: str = ""
