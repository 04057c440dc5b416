"""Kubernikus replaces nodes that differ from the control plane, and deletes those with a label.

The major, minor and patch version of the kubelet are compared, because vendors add builds of their own after
these. A kubelet that is newer differs, too, because a control plane may be downgraded.
"""

from __future__ import annotations

from reconciler.features.kubernikus.feature import DELETE_LABEL, Numbers, numbers_of
from reconciler.features.kubernikus.settings import CONTROLLER, SECTION
from reconciler.model import limits
from reconciler.model.event import Answer, Initiator, Kind, Reading, Signal, Status
from reconciler.model.node import TYPE_LABEL, Node
from reconciler.model.snapshot import ServerVersion
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.settings.schema import Settings

KUBERNIKUS = "kubernikus"
"""The source of kubelets that have another version than the control plane."""


class KubeletVersions(Source):
    """Nodes whose kubelet has another version than the API server."""

    name = KUBERNIKUS
    reports_start = False
    who = "the administrator of the cluster: `kubectl get node {node} -o wide` shows its version"

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


class NodesToDelete(Source):
    """Nodes with the label that asks for the deletion of their servers."""

    name = "kubernikusDelete"
    reports_start = False
    who = f"whoever set the label {DELETE_LABEL} of {{node}}"

    def enabled(self, settings: Settings) -> bool:
        """Whether `kubernikus` is on."""
        return CONTROLLER.of(settings).enabled

    def wants(self, settings: Settings) -> Wants:
        """Return the label."""
        del settings
        return Wants(labels=frozenset({DELETE_LABEL}))

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return a Redeploy without a date that asks for a new machine, if the label says so."""
        del context
        if node.labels.get(DELETE_LABEL) != "true":
            return (Reading(self.name, Answer.NO_EVENT),)
        description = f"the label {DELETE_LABEL} asks for a new server"
        signal = Signal(
            self.name,
            Kind.REDEPLOY,
            Status.SCHEDULED,
            id="delete-node",
            description=description,
            replaces=True,
        )
        return (Reading(self.name, Answer.EVENT, (signal,)),)


SOURCES = (KubeletVersions(), NodesToDelete())


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


def _text(version: Numbers) -> str:
    return "v" + ".".join(map(str, version))
