"""Nodes as AKS names and labels them."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.machine import MAIN
from reconciler.model.node import OS_LABEL, SPOT_LABEL, ZONE_LABEL, Condition, Node, Taint

REGION = "westeurope"
_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
_GROUP = f"mc_rg-shop_shop_{REGION}"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class SimulatedPool(Struct, frozen=True):
    """A node pool on a uniform scale set; `cluster` is the number that AKS gives it."""

    name: str
    spot: bool = False
    cluster: str = "31415926"

    @property
    def scale_set(self) -> str:
        """The name of its scale set."""
        return f"aks-{self.name}-{self.cluster}-vmss"

    def node(self, instance: int, *, detector: bool = True) -> Node:
        """Return the node of one instance, in the next zone in turn;

        `detector`: it has node-problem-detector.
        """
        taints = (Taint(SPOT_LABEL, "spot", "NoSchedule"),) if self.spot else ()
        return Node(
            name=f"{self.scale_set}{_six_digits(instance)}",
            uid="",
            resource_version="",
            labels={
                "agentpool": self.name,
                "kubernetes.azure.com/agentpool": self.name,
                ZONE_LABEL: f"{REGION}-{instance % 3 + 1}",
                OS_LABEL: "linux",
                **({SPOT_LABEL: "spot"} if self.spot else {}),
            },
            provider_id=(
                f"azure:///subscriptions/{_SUBSCRIPTION}/resourceGroups/{_GROUP}/providers/Microsoft.Compute"
                f"/virtualMachineScaleSets/{self.scale_set}/virtualMachines/{instance}"
            ),
            taints=taints,
            conditions=(no_event(),) if detector else (),
        )


def no_event() -> Condition:
    """Return the condition that AKS's detector writes when no event is scheduled."""
    return Condition(MAIN, "False", "NoVMEventScheduled", "VM has no scheduled event")


def _six_digits(number: int) -> str:
    """Return a number as in the computer names of scale sets: base 36, six digits."""
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return digits
