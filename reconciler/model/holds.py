"""Kinds of holds: what a hold is called, who can end it, and how it ends. Here are those of the core.

A check is a kind of hold by itself. A feature declares its own kinds in its folder, as `Feature.holds`.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from reconciler.model.plan import Hold
from reconciler.model.reconciler import LOG, LOOK

SETTINGS = "the owner of the settings"
NOBODY = "nobody: it ends by itself"
_PERMITS = "the administrator of the cluster: `kubectl apply -k k8s/base` permits the reconciler to"


class HoldKind(Struct, frozen=True):
    """A kind of hold. Reports, logs and objects of features show the code, so it never changes.

    `who` says who can end it, as `who_ends` completes it, empty for a check that only states a fact.
    `by_itself`: it ends without a person in the ordinary course of things. `waits`: it waits as well, but may
    need a person to end it in time. `by_person`: a person has asked for it.
    """

    code: str
    who: str
    by_itself: bool = False
    waits: bool = False
    by_person: bool = False

    def on(
        self, node: str, reason: str, until: datetime | None = None, *, asks: datetime | None = None
    ) -> Hold:
        """Return a hold of this kind on a node; the moments are those of Hold (UTC)."""
        return Hold(node, self.code, reason, until, asks=asks)


DISMISSED = HoldKind("dismissed", "a person: `{release}` lets the reconciler drain it again")
DRAIN_BLOCKED = HoldKind(
    "drain",
    "the owner of the pod, or of the budget or webhook that refuses its eviction: "
    "`kubectl get pods -A --field-selector spec.nodeName={node}` shows the pods",
)
DRAIN_SLOT = HoldKind(
    "drainSlot",
    f"{NOBODY} when another drain ends; or {SETTINGS}: `drain.maxConcurrentNodes`",
    by_itself=True,
)
END_REPORTED = HoldKind("endReported", "whoever knows that the maintenance is over: `{release}`")
EVENT_READABLE = HoldKind(
    "eventReadable",
    "whoever wrote the event; a request is overwritten with `reconciler request {node} --kind KIND "
    "--replace{config}`",
)
INTERNAL = HoldKind("internal", f"the developers: the log has the traceback: `{LOG}`")
IN_TIME = HoldKind("inTime", "nobody: it has started", by_itself=True)
LOOKED_AFTER = HoldKind(
    "lookedAfter",
    f"whoever labelled the node: `kubectl label node {{node}} {{keys}}/ignore-`; or {SETTINGS}: "
    "`nodeSelector`",
)
NAMESPACES_READABLE = HoldKind("namespacesReadable", f"{_PERMITS} list namespaces")
NODE_WRITABLE = HoldKind(
    "nodeWritable",
    "the administrator of the cluster: `kubectl get "
    "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies` lists "
    "what may change or deny the write",
)
NOT_CLAIMED = HoldKind("notClaimed", "the person whom the reason names: `{release}` ends it", by_person=True)
ONE_PROFILE = HoldKind("oneProfile", f"{NOBODY} when the other profile is done", by_itself=True)
PODS_READABLE = HoldKind("podsReadable", f"{_PERMITS} list pods")
RECONCILER_RUNS = HoldKind("reconcilerRuns", f"whoever runs the reconciler: `{LOOK}`")
RECORD_READABLE = HoldKind("recordReadable", "a person: `{release} --reset` removes the record")

OF_THE_CORE = (
    DISMISSED,
    DRAIN_BLOCKED,
    DRAIN_SLOT,
    END_REPORTED,
    EVENT_READABLE,
    INTERNAL,
    IN_TIME,
    LOOKED_AFTER,
    NAMESPACES_READABLE,
    NODE_WRITABLE,
    NOT_CLAIMED,
    ONE_PROFILE,
    PODS_READABLE,
    RECONCILER_RUNS,
    RECORD_READABLE,
)
"""Holds that come from no check, and from no feature."""
