"""What is found about pods that have to go, and what a page shows of the findings of all nodes."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


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


class Workload(Struct, frozen=True, order=True):
    """The top controller of pods, as far as names show it; an empty `kind` is all pods of no controller."""

    namespace: str
    kind: str
    name: str


class FindingRow(Struct, frozen=True):
    """A finding about a workload: how bad it is, where its pods are, why, and what helps."""

    title: str
    severity: str
    place: str
    because: str
    remedy: str


class FindingsPart(Struct, frozen=True):
    """The summary, what was judged and when, what could not be seen, and the worst findings.

    `rest` says how many findings are left out, empty for none. A large cluster has tens of thousands of
    findings, so a process keeps this part and not all of them.
    """

    headline: str
    assumption: str
    remarks: tuple[str, ...]
    rows: tuple[FindingRow, ...]
    rest: str = ""


class KnownFindings(Struct, frozen=True):
    """The findings as far as they are known. `note` says why there are no newer ones, or none."""

    part: FindingsPart | None = None
    note: str = ""
