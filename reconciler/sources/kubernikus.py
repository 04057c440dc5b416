"""The version of the kubelet as a source: Kubernikus replaces nodes that differ from the control plane.

It compares major, minor and patch version, because vendors add builds of their own after these. A kubelet
that is newer differs, too, because a control plane may be downgraded.
"""

from __future__ import annotations

import re

from pydantic import Field

from reconciler.model import limits
from reconciler.model.event import KUBERNIKUS, Answer, Initiator, Kind, Reading, Signal, Status
from reconciler.model.node import TYPE_LABEL, Node
from reconciler.model.snapshot import ServerVersion
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.settings.fields import Flag, Section
from reconciler.settings.schema import Settings, SourceSection

_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+.][0-9A-Za-z.+~_-]*)?", re.ASCII)

Numbers = tuple[int, int, int]


class KubernikusSource(Section):
    """Nodes of Kubernikus whose kubelet has another version than the control plane."""

    enabled: Flag = Field(
        default=False,
        description="Whether such a node gets an event of the kind `Redeploy`.",
    )


SECTION: SourceSection[KubernikusSource] = SourceSection(
    key="kubernikus",
    type=KubernikusSource,
    default=KubernikusSource(),
    description="Kubelets with another version than the control plane. See docs/esx.md#kubernikus.",
)

SECTIONS = (SECTION,)


class KubeletVersions(Source):
    """Nodes whose kubelet has another version than the API server."""

    name = KUBERNIKUS
    reports_start = False
    who = "the administrator of the cluster: kubectl get node {node} -o wide shows its version"

    def enabled(self, settings: Settings) -> bool:
        """Whether `sources.kubernikus` is on."""
        return SECTION.of(settings).enabled

    def wants(self, settings: Settings) -> Wants:
        """Return the version of the API server; that of the kubelet is always read."""
        del settings
        return Wants(server=True)

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return whether the versions differ; nothing for a node that is no VM."""
        if node.labels.get(TYPE_LABEL) == "virtual-kubelet":
            return ()
        return (read(node, context.server),)


SOURCES = (KubeletVersions(),)


def read(node: Node, server: ServerVersion) -> Reading:
    """Return an event if the kubelet of the node has another version than the API server."""
    if server.problem:
        because = f"the version of the API server can't be read: {server.problem}"
        return Reading(KUBERNIKUS, Answer.UNKNOWN, because=because)
    wanted, have = numbers_of(server.text), numbers_of(node.kubelet_version)
    if wanted is None or have is None:
        whose, text = ("API server", server.text) if wanted is None else ("kubelet", node.kubelet_version)
        because = f"the version of the {whose} is {limits.excerpt(text)}, which can't be read"
        return Reading(KUBERNIKUS, Answer.UNKNOWN, because=because)
    if wanted == have:
        return Reading(KUBERNIKUS, Answer.NO_EVENT)
    kubelet, control_plane = _text(have), _text(wanted)
    signal = Signal(
        KUBERNIKUS,
        Kind.REDEPLOY,
        Status.SCHEDULED,
        # The next version is another event: it also drains a node that somebody uncordoned for this one.
        id=f"kubelet-{kubelet}-{control_plane}",
        description=f"the kubelet has version {kubelet}, the control plane {control_plane}",
        initiator=Initiator.PLATFORM,
    )
    return Reading(KUBERNIKUS, Answer.EVENT, (signal,))


def numbers_of(text: str) -> Numbers | None:
    """Return major, minor and patch version of a text like `v1.33.2-gke.1`; None if it can't be read."""
    found = _VERSION.fullmatch(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _text(version: Numbers) -> str:
    return "v" + ".".join(map(str, version))
