"""Hypervisor objects (`kvm.cloud.sap/v1`) of OpenStack's hypervisor operator: one per node, with its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct, field

Value = bool | int | str | tuple[str, ...]
"""The value of a field."""

SPEC: Mapping[str, Value] = MappingProxyType(
    {
        "aggregates": (),
        "allowedProjects": (),
        "createCertManagerCertificate": False,
        "customTraits": (),
        "evacuateOnReboot": False,
        "highAvailability": False,
        "installCertificate": False,
        "lifecycleEnabled": False,
        "maintenance": "",
        "maintenanceReason": "",
        "reboot": False,
        "skipTests": False,
        "version": "",
    }
)
"""The fields of the spec, each with the value that an absent field means."""

STATUS: Mapping[str, Value] = MappingProxyType(
    {
        "aggregates": (),
        "evicted": False,
        "hypervisorId": "",
        "hypervisorVersion": "",
        "internalIp": "",
        "libVirtVersion": "",
        "numInstances": 0,
        "serviceId": "",
        "specHash": "",
        "traits": (),
    }
)
"""The fields of the status, each with the value that an absent field means."""


class Hypervisor(Struct, frozen=True):
    """A Hypervisor as it was read.

    `spec` and `status` have all fields of `SPEC` and `STATUS`. A value is None if it is of another type than
    the field. `conditions` are the status of each condition by its type, None if they can't be read.
    """

    name: str
    uid: str
    spec: Mapping[str, Value | None] = field(default_factory=lambda: dict(SPEC))
    status: Mapping[str, Value | None] = field(default_factory=lambda: dict(STATUS))
    conditions: Mapping[str, str] | None = field(default_factory=dict)


class HypervisorWrite(Struct, frozen=True):
    """Fields of the spec to set on the Hypervisor with this name and UID."""

    name: str
    uid: str
    fields: Mapping[str, Value]
