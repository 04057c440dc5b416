"""Who can change what holds a node, in words. A check says it where it is registered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from reconciler import plugins
from reconciler.model.holds import HoldCode
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.plugins import NOBODY, SETTINGS
from reconciler.settings.schema import Settings

_PLATFORM = "the platform, which ends the event after its maintenance"
_REQUESTER = "whoever requested it: reconciler request {node} --cancel{config} ends it"

WHO: Mapping[str, str] = MappingProxyType(
    {
        **{name: check.type.who for name, check in CHECKS.items() if check.type.who},
        # Holds without a check.
        HoldCode.DISMISSED: "a person: reconciler drain {node}{prefix} drains it by hand",
        HoldCode.DRAIN: "the owner of the pod, or of the budget or webhook that refuses its eviction",
        HoldCode.DRAIN_SLOT: f"{NOBODY} when another drain ends; or {SETTINGS}: `drain.maxConcurrentNodes`",
        HoldCode.END_REPORTED: "whoever knows that the maintenance is over: {release}",
        HoldCode.EVENT_READABLE: "whoever wrote the event; a request is overwritten with reconciler request "
        "{node} --kind KIND --replace{config}",
        HoldCode.INTERNAL: "the developers: the log of the reconciler has the traceback",
        HoldCode.IN_TIME: "nobody: it has started",
        HoldCode.LOOKED_AFTER: f"whoever labelled the node; or {SETTINGS}: `nodeSelector`",
        HoldCode.NAMESPACES_READABLE: "the administrator of the cluster: the reconciler must list namespaces",
        HoldCode.NODE_WRITABLE: "the administrator of the cluster: kubectl get "
        "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies lists "
        "what may change or deny the write",
        HoldCode.NOT_CLAIMED: "the person whom the reason names: {release} ends it",
        HoldCode.ONE_PROFILE: f"{NOBODY} when the other profile is done",
        HoldCode.PODS_READABLE: "the administrator of the cluster: the reconciler must list pods",
        HoldCode.RECORD_READABLE: "a person: {release} --reset removes the record",
        HoldCode.WORKFLOW: f"whoever can change what the check reads; or {SETTINGS}: `profiles`",
        HoldCode.WORKFLOW_DATA_READABLE: "whoever wrote the annotation; a person can remove it",
        HoldCode.WORKFLOW_GONE: "a person: {release} uncordons the node",
        HoldCode.WORKFLOW_UNCORDONED: "a person: kubectl cordon {node} goes on with the drain",
    }
)
"""By the code of a hold. `who_ends` fills in what is in braces."""

_BY_ITSELF = frozenset(
    {
        *(name for name, check in CHECKS.items() if check.type.by_itself),
        HoldCode.DRAIN_SLOT,
        HoldCode.IN_TIME,
        HoldCode.ONE_PROFILE,
    }
)
"""Codes of holds that end without a person in the ordinary course of things."""


@cache
def _readers() -> Mapping[str, str]:
    """Return who can make a source readable again, by the first part of the names of its readings."""
    return {
        name.partition(":")[0]: source.who
        for module in plugins.modules("source")
        for source in module.SOURCES
        for name in source.reading_names(Settings())
    }


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
    return _readers().get(source.partition(":")[0], "the administrator of the cluster").format(node=node)
