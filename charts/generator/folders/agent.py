"""The node agent, k8s/agent."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from charts.generator.edits import (
    FROM_MONITORING,
    OF_ALL,
    Edit,
    extended,
    log_level,
    pod_labels,
    prefix_of,
    pull_secrets,
    replaced,
)
from charts.generator.part import Objects, Part


class Agent(Part):
    """The node agent, which reads the scheduled events of each VM on Azure, see docs/agent.md."""

    enabled: bool = Field(
        default=False,
        description="Whether the agent is installed, in its own namespace `node-maintenance-agent`.",
    )
    address: Literal["127.0.0.1", ""] = Field(
        default="127.0.0.1",
        description="Where the agent shows its metrics, at port 20270. The default is its node alone. An"
        " empty text means all that reach the node by IPv4 or IPv6.",
    )
    resources: dict[str, Any] = Field(
        default={"requests": {"cpu": "5m", "memory": "25Mi"}, "limits": {"memory": "48Mi"}},
        description="Requests and limits of the container.",
    )
    node_selector: dict[str, str] = Field(
        default={}, description="Labels that a node must have, in addition to `kubernetes.io/os: linux`."
    )
    tolerations: Objects = Field(default=[], description="Tolerations for the taints of your own pools.")


VALUES = Agent
CONDITIONS = {
    "": ".Values.agent.enabled",
    "network-policy.yaml": "and .Values.agent.enabled .Values.networkPolicies.enabled",
}


def _agent(space: int) -> tuple[Edit, ...]:
    indent = " " * space
    return (
        pod_labels(space, "node-maintenance-agent", "agent", OF_ALL),
        pull_secrets(space),
        extended(
            f"{indent}- key: karpenter.sh/unregistered\n{indent}  operator: Exists\n",
            ".Values.agent.tolerations",
            space,
        ),
        extended(f"{indent}  kubernetes.io/os: linux\n", ".Values.agent.nodeSelector", space + 2),
        Edit(
            f"{indent}  - --listen={Agent().address}:20270\n",
            f"{indent}  - --listen={{{{ .Values.agent.address }}}}:20270\n"
            f'{indent}  {{{{- if ne (include "node-maintenance.prefix" .) "node-maintenance.dev" }}}}\n'
            f'{indent}  - --key-prefix={{{{ include "node-maintenance.prefix" . }}}}\n'
            f"{indent}  {{{{- end }}}}\n{log_level(space + 2)}",
        ),
        replaced("resources", Agent().resources, ".Values.agent.resources", space + 2),
    )


EDITS = {
    "admission-policy.yaml": (prefix_of("imds"),),
    "daemonset.yaml": _agent(6),
    "network-policy.yaml": (FROM_MONITORING,),
}
