"""OpenShift's machine API: an annotation on the node names its Machine, as `namespace/name`."""

from __future__ import annotations

from reconciler.features.machines.provider import MachineProvider
from reconciler.model import machine
from reconciler.model.machine import MachineRef
from reconciler.model.node import Node

NAME = machine.OPENSHIFT
MACHINE = machine.OPENSHIFT_MACHINE


def ref_of(node: Node) -> MachineRef | None:
    """Return the node's Machine, None if the annotation has no namespace."""
    if not (named := node.annotations.get(MACHINE)):
        return None
    namespace, _, name = named.rpartition("/")
    return MachineRef(node.name, node.uid, NAME, name, namespace, provider_id=node.provider_id)


OPENSHIFT = MachineProvider(NAME, ref_of, frozenset({MACHINE}))
