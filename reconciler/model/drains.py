"""What a drain is asked to do, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.selector import EVERYTHING, LabelSelector


class Behavior(StrEnum):
    """What a pod rule says, in Cluster API's words (MachineDrainRule)."""

    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT_COMPLETED = "WaitCompleted"


@dataclass(frozen=True, slots=True)
class PodRule:
    """One rule: the pods it is for, what happens to them, and in which order (lowest first).

    `namespaces` are names; `namespace_selector` is for the namespaces' labels; both None means any.
    """

    name: str
    pods: LabelSelector = EVERYTHING
    namespaces: frozenset[str] | None = None
    namespace_selector: LabelSelector | None = None
    behavior: Behavior = Behavior.DRAIN
    order: int = 0


@dataclass(frozen=True, slots=True)
class DrainOptions:
    """How pods are treated; kubectl's flags of the same meaning stand in brackets.

    In a pass `strict` is False: a pod that is kept keeps only itself. By hand it is True: one pod that may
    not go refuses the whole drain, as kubectl does. `grace` (--grace-period) replaces each pod's own,
    `max_grace` only caps it. `skip_terminating_after` (--skip-wait-for-delete-timeout) lets pods be whose
    deletion is older than that. `gone_daemonsets` are `namespace/name` of owners that were looked for and not
    found. Keys under `prefix` on a pod speak to us.
    """

    ignore_daemonsets: bool = True
    evict_empty_dir: bool = False
    evict_unmanaged: bool = False
    strict: bool = False
    grace: int | None = None
    max_grace: timedelta | None = None
    skip_terminating_after: timedelta | None = None
    pod_selector: LabelSelector | None = None
    use_delete: bool = False
    rules: tuple[PodRule, ...] = ()
    gone_daemonsets: frozenset[str] = frozenset()
    prefix: str = DEFAULT_PREFIX


@dataclass(frozen=True, slots=True)
class Escalation:
    """What may be done when a drain does not finish; each part is off when None or False.

    `warn_after` names the blocker loudly. `delete_before_deadline`: what would not be gone by `deadline`
    with its grace is deleted instead of evicted. `force_stuck_after`: pods still there so long after their
    grace on a node that is not Ready are deleted with grace 0.
    """

    warn_after: timedelta | None = None
    delete_before_deadline: bool = False
    deadline: datetime | None = None
    force_stuck_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class DrainOrder:
    """One node's drain as the plan asks for it.

    `since` is when this attempt began (UTC), from which `timeout` (None: without end) counts.
    `own_pod` is `namespace/name` of the pod that we run in, which goes last. `namespaces` are the labels of
    each namespace, needed where a rule selects by them.
    """

    node: str
    uid: str
    since: datetime
    timeout: timedelta | None
    options: DrainOptions = field(default_factory=DrainOptions)
    escalation: Escalation = field(default_factory=Escalation)
    restart_singletons: bool = False
    node_ready: bool = True
    own_pod: str | None = None
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Phase(StrEnum):
    """How far one drain is."""

    RUNNING = "running"
    DRAINED = "drained"
    STOPPED = "stopped"
    TIMED_OUT = "timed out"
    FAILED = "failed"
    NODE_GONE = "node gone"


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why one pod is still there: `pod` is `namespace/name`, `budget` too, empty where none refuses."""

    pod: str
    because: str
    budget: str = ""


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """How far one node's drain is, as the drainer sees it.

    `escalations` are the stages that the settings allowed and that were taken, a sentence each.
    """

    node: str
    uid: str
    phase: Phase
    total: int = 0
    gone: int = 0
    evicted: int = 0
    kept: tuple[Blocker, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[str, ...] = ()
    escalations: tuple[str, ...] = ()
    error: str = ""
    finished: datetime | None = None
