"""The events of IMDS that the node agent published, as a source: the annotation `<prefix>/imds`.

The agent writes no heartbeat to the node, so the readiness of its pod shows whether it works. Without the
DaemonSet, an annotation is used, because the agent may run in another way.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from reconciler.model.azure import vm_name
from reconciler.model.event import Answer, Reading
from reconciler.model.node import Node
from reconciler.model.snapshot import Agents
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.settings.schema import Settings
from reconciler.sources.imds import scheduled_events as imds
from reconciler.sources.imds.keys import PUBLISHED
from reconciler.sources.imds.settings import SECTION

_NONE = Reading(imds.SOURCE, Answer.NO_EVENT)
_ABSENT = Reading(imds.SOURCE, Answer.UNKNOWN, because="no node agent is installed", installed=False)
_WINDOWS = Reading(
    imds.SOURCE, Answer.UNKNOWN, because="Windows nodes are not covered by the agent", installed=False
)


_SHORT = 2048
"""Characters of an annotation that is read once. The same text stays on a node for many passes."""

_kept = lru_cache(maxsize=1024)(imds.published)


class PublishedEvents(Source):
    """Scheduled events of Azure's instance metadata service, from the node agent's annotation."""

    name = imds.SOURCE
    reports_start = True
    who = (
        "the administrator of the cluster: is the agent's pod on {node} ready? `kubectl get pods "
        "-n node-maintenance-agent --field-selector spec.nodeName={node}`"
    )

    def enabled(self, settings: Settings) -> bool:
        """Whether `sources.imds` is on."""
        return SECTION.of(settings).enabled

    def notice_names(self, settings: Settings) -> Collection[str]:
        """Return its name: IMDS has all scheduled events."""
        return self.reading_names(settings)

    def wants(self, settings: Settings) -> Wants:
        """Return the state of the agents; the annotation is one of ours and always read."""
        del settings
        return Wants(agents=True)

    def vm_name(self, node: Node) -> str | None:
        """Return the name in IMDS of the node's VM, None if it is not Azure's."""
        return vm_name(node.provider_id)

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return what IMDS reported, or why that is unknown; nothing for a node that needs no agent."""
        if node.runs_no_agent:
            return ()
        return (read(node, context.settings.keys.prefix, context.agents),)


SOURCES = (PublishedEvents(),)


def read(node: Node, prefix: str, agents: Agents) -> Reading:
    """Return what IMDS reported about the node's VM when its agent last published."""
    key = PUBLISHED.below(prefix)
    text = node.annotations.get(key)
    # An event that was published counts without the state of the agents: its cordon does not wait for that.
    silent = (
        Reading(imds.SOURCE, Answer.UNKNOWN, because=f"the state of the agents is unknown: {agents.problem}")
        if agents.problem
        else None
    )
    if silent is not None and text is None:
        return silent
    if node.name in agents.not_ready:
        return Reading(
            imds.SOURCE,
            Answer.UNKNOWN,
            because="its agent is not ready, so it may not reach IMDS or the API server",
        )
    if text is None and node.is_windows:
        return _WINDOWS
    if agents.covered is not None and node.name not in agents.covered:
        return Reading(imds.SOURCE, Answer.UNKNOWN, because="the agent's DaemonSet has no pod on the node")
    if text is None:
        return _NONE if agents.installed else _ABSENT
    found = _kept(text) if len(text) <= _SHORT else imds.published(text)
    if found.is_of_another_vm(node.provider_id):
        because = (
            f"the published events are about another VM, {found.vm}: they were copied from"
            " another node, and a pass removes them; then the agent publishes those of this VM"
        )
        return Reading(imds.SOURCE, Answer.UNKNOWN, because=because)
    if found.problem:
        return Reading(imds.SOURCE, Answer.UNKNOWN, because=found.problem)
    if silent is not None and not found.signals:
        return silent
    # The agent writes no heartbeat, so nothing else shows that nobody updates the annotation any more.
    abandoned = (
        f"no node agent is installed, and the annotation {key} stays in force: remove it if no agent "
        "runs, see docs/agent.md"
        if not (agents.installed or agents.problem)
        else ""
    )
    answer = Answer.EVENT if found.signals else Answer.NO_EVENT
    return Reading(imds.SOURCE, answer, found.signals, abandoned=abandoned)
