"""Who can change what holds a node, in words. To add a check that holds, add its line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reconciler.model.holds import HoldCode
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys

_SETTINGS = "the owner of the settings"
_PLATFORM = "the platform, which ends the event after its maintenance"
_REQUESTER = "whoever requested it: reconciler request {node} --cancel{config} ends it"
_NOBODY = "nobody: it ends by itself"
_HOOK = (
    "the owner of the hook that the reason names, which ends by itself after `hooks.timeout`; only a hook in "
    "an annotation can be removed: kubectl annotate node {{node}} {{keys}}/{step}.NAME-"
)

WHO: Mapping[str, str] = MappingProxyType(
    {
        # Checks.
        "startsAllowed": f"{_SETTINGS}: `mode: Enforce` starts drains again",
        "clockTrusted": "the administrator of the machines of the API server: correct their clocks",
        "leftToUs": f"{_NOBODY} when the other tool is done with the node",
        "windowOpen": f"{_NOBODY} when a window opens; or {_SETTINGS}: `windows`, `notAllowed`, `calendars`",
        "startPlanned": f"{_NOBODY} at the planned start; or {_SETTINGS}: `start` and `ahead` of the kind",
        "notHeld": "whoever holds it: reconciler resume {node}{config} ends the hold",
        "notStopped": "whoever holds it: reconciler resume {node}{config} ends the hold",
        "notDeferred": f"{_NOBODY} at that moment; or a person: reconciler resume {{node}}{{config}} ends it",
        "approved": "whoever may approve it: reconciler approve {node}{config}",
        "othersFirst": f"{_NOBODY} when the other nodes are drained",
        "spacingKept": f"{_NOBODY} after the spacing; or {_SETTINGS}: `budget.spacing`",
        "budgetLeft": "whoever can bring these nodes back into service; or "
        f"{_SETTINGS}: `budget.maxUnavailable`, `perZone`, `perPool`",
        "surgeDue": "the administrator of the node pool",
        "replacementReady": "the administrator of the node pool: the new machine must become Ready",
        "replaceDue": f"the owner of what the reason names; or {_SETTINGS}: `replace` of the kind",
        "acknowledgeDue": "whoever can drain the other VMs of the event",
        "selfServiceDue": f"{_NOBODY} when Azure accepts the request",
        "selfServiceDone": "Azure, which does the maintenance",
        "selfServiceFailed": "Azure, which does the maintenance",
        "machineStays": "the machine provider, which deletes the machine",
        "eventsGone": "{ends}",
        "nodeReady": "the administrator of the node: kubectl describe node {node}",
        "leftByRemediator": "AKS: it removes its taint, or the annotations of its upgrade",
        "preDrainHooksDone": _HOOK.format(step="pre-drain"),
        "postDrainHooksDone": _HOOK.format(step="post-drain"),
        "preUncordonHooksDone": _HOOK.format(step="pre-uncordon"),
        # Holds without a check.
        HoldCode.DISMISSED: "a person: reconciler drain {node}{prefix} drains it by hand",
        HoldCode.DRAIN: "the owner of the pod, or of the budget or webhook that refuses its eviction",
        HoldCode.DRAIN_SLOT: f"{_NOBODY} when another drain ends; or {_SETTINGS}: `drain.maxConcurrentNodes`",
        HoldCode.END_REPORTED: "whoever knows that the maintenance is over: {release}",
        HoldCode.EVENT_READABLE: "whoever wrote the event; a request is overwritten with reconciler request "
        "{node} --kind KIND --replace{config}",
        HoldCode.INTERNAL: "the developers: the log of the reconciler has the traceback",
        HoldCode.IN_TIME: "nobody: it has started",
        HoldCode.LOOKED_AFTER: f"whoever labelled the node; or {_SETTINGS}: `nodeSelector`",
        HoldCode.NAMESPACES_READABLE: "the administrator of the cluster: the reconciler must list namespaces",
        HoldCode.NODE_WRITABLE: "the administrator of the cluster: kubectl get "
        "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies lists "
        "what may change or deny the write",
        HoldCode.NOT_CLAIMED: "the person whom the reason names: {release} ends it",
        HoldCode.ONE_PROFILE: f"{_NOBODY} when the other profile is done",
        HoldCode.PODS_READABLE: "the administrator of the cluster: the reconciler must list pods",
        HoldCode.RECORD_READABLE: "a person: {release} --reset removes the record",
        HoldCode.WORKFLOW: f"whoever can change what the check reads; or {_SETTINGS}: `profiles`",
        HoldCode.WORKFLOW_DATA_READABLE: "whoever wrote the annotation; a person can remove it",
        HoldCode.WORKFLOW_GONE: "a person: {release} uncordons the node",
        HoldCode.WORKFLOW_UNCORDONED: "a person: kubectl cordon {node} goes on with the drain",
    }
)
"""By the code of a hold. `who_ends` fills in what is in braces."""

FACTS = frozenset({"cordonAdopted", "drainAsked", "drainDue", "plannedForLater", "uncordonedByOthers"})
"""Checks that only state a fact, so that their answer holds nothing."""

_BY_ITSELF = frozenset(
    {
        "leftToUs",
        "windowOpen",
        "startPlanned",
        "notDeferred",
        "othersFirst",
        "spacingKept",
        "budgetLeft",
        "replacementReady",
        "acknowledgeDue",
        "selfServiceDue",
        "selfServiceDone",
        "machineStays",
        "leftByRemediator",
        HoldCode.DRAIN_SLOT,
        HoldCode.IN_TIME,
        HoldCode.ONE_PROFILE,
    }
)
"""Codes of holds that end without a person in the ordinary course of things."""

_SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "imds": "the administrator of the cluster: is the agent's pod on {node} ready? kubectl -n "
        "node-maintenance-agent get pods --field-selector spec.nodeName={node}",
        "condition": "the administrator of the node: does its node-problem-detector report? kubectl describe "
        "node {node} shows the heartbeats of its conditions",
        "arm": "the administrator of the cluster: may its identity read Azure? See docs/azure.md",
        "aws": "the administrator of the cluster: may its role read EC2? See docs/aws.md",
        "esx": "the administrator of the ESX controller, which writes the label of {node}: see docs/esx.md",
        "vcenter": "the administrator of vCenter: does it list the host of {node}? See docs/esx.md",
        "kubernikus": "the administrator of the cluster: kubectl get node {node} -o wide shows its version",
    }
)


def who_ends(code: str, node: str, keys: OwnKeys, *, requested: bool = False) -> str:
    """Return who can end a hold of this code on the node, and how.

    `requested` is whether a person requested the maintenance that has to end. The commands name what they
    need where the prefix of the keys is not the default.
    """
    other = keys.prefix != DEFAULT_PREFIX
    parts = {
        "node": node,
        "keys": keys.prefix,
        "release": keys.release(node),
        "prefix": f" --prefix {keys.prefix}" if other else "",
        "config": " --config FILE" if other else "",
    }
    ends = (_REQUESTER if requested else _PLATFORM).format(**parts)
    return WHO.get(code, "see docs/operating.md#checks").format(**parts, ends=ends)


def ends_by_itself(code: str, *, requested: bool = False) -> bool:
    """Return whether a hold of this code ends without a person in the ordinary course of things.

    `requested` is whether a person requested the maintenance: then a person ends it.
    """
    return code in _BY_ITSELF or (code == "eventsGone" and not requested)


def who_reads(source: str, node: str) -> str:
    """Return who can make a source readable again, and what to check."""
    return _SOURCES.get(source.partition(":")[0], "the administrator of the cluster").format(node=node)
