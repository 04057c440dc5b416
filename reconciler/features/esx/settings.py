"""`sources.esx`: maintenance of ESX hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from pydantic import Field, model_validator

from reconciler.features.esx.original import ESX_YAML, OFTEN
from reconciler.model import limits
from reconciler.model.event import Kind
from reconciler.model.grants import Grants
from reconciler.settings.fields import LINK_LOCAL, Duration, Flag, SecretText, Section, Text
from reconciler.settings.mistakes import KeyWarning, Mistake, Mistakes
from reconciler.settings.schema import FeatureSection, Settings, SourceSection

LABEL = "cloud.sap/esx-in-maintenance"
VERSION = "cloud.sap/esx-version"
INITIATED = "cloud.sap/esx-reboot-initiated"
"""The annotation of a node that goes off with its host, and comes back with it."""

AZ = "$AZ"
"""In the address of a vCenter: the last character of the zone of a node."""

_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|(?:\$AZ|[A-Za-z0-9._-]){1,253})(?::[0-9]{1,5})?/?",
    re.ASCII,
)


class VCenter(Section):
    """One vCenter server."""

    url: Text = Field(
        description="Its address, such as `https://vc.example.com` (`http` needs `insecure`, except for this "
        "machine). `$AZ` is the last character of a node's zone, such as `a` of `eu-de-1a`."
    )
    zone: Text | None = Field(
        default=None,
        description="The zone of its nodes, which comes first, or its last character. Default: all that no "
        "other entry names.",
    )
    username: SecretText = Field(description="The user, who only reads.")
    password: SecretText = Field(description="The user's password.")
    ca_file: Text | None = Field(
        default=None, description="Its certificate authority. Default: those of the system."
    )
    insecure: Flag = Field(
        default=False,
        description="Whether its certificate is not verified, or none is needed, so that others can read the "
        "password.",
    )

    @model_validator(mode="after")
    def _guarded_address(self) -> VCenter:
        found = _ADDRESS.fullmatch(self.url)
        why = ""
        if found is None:
            why = "is not the address of a server; write it like https://vc.example.com"
        elif AZ in found["host"] and not any(map(str.isalpha, found["host"].replace(AZ, ""))):
            why = f"has {AZ} in an address of numbers; it may only be in a name"
        elif found["host"].startswith(LINK_LOCAL):
            why = "is a link-local address, where clouds serve credentials"
        elif found["scheme"] != "https" and found["host"] not in ("127.0.0.1", "localhost"):
            why = "" if self.insecure else "would send the password unencrypted; write https://"
        mistakes = [Mistake(("url",), why)] if why else []
        if self.insecure and self.ca_file is not None:
            mistakes.append(Mistake(("insecure",), "leaves caFile without an effect; remove one of them"))
        if mistakes:
            raise Mistakes(tuple(mistakes))
        return self


class VCenters(Struct, frozen=True):
    """What the source asks of vCenter servers; `enabled` only if the settings name some."""

    enabled: bool
    every: timedelta
    servers: tuple[VCenter, ...]
    alarms: tuple[str, ...]


class EsxSource(Section):
    """Maintenance of the ESX host under a node."""

    enabled: Flag = Field(
        default=False,
        description="Whether they are read: from the label `cloud.sap/esx-in-maintenance` of "
        "maintenance-controller's ESX controller, or at `vcenters`.",
    )
    vcenters: tuple[VCenter, ...] = Field(
        default=(),
        max_length=limits.ENTRIES,
        description="The vCenter servers to query, instead of the label. They need the extra `esx`. Default: "
        "none.",
    )
    every: Duration = Field(
        default=timedelta(minutes=5), description="How often, at least 10s; after a failure 1m."
    )
    alarms: tuple[Text, ...] = Field(
        default=(),
        max_length=limits.ENTRIES,
        description="The alarms that count, such as `Host memory usage`. Default: none.",
    )
    maintenance: Kind = Field(
        default=Kind.REBOOT, description="The kind of the event while the host is in maintenance."
    )
    reboot_ok: Flag = Field(
        default=False,
        description='Whether only nodes with the label `cloud.sap/esx-reboot-ok: "true"` have these events.',
    )
    alarm: Kind = Field(
        default=Kind.REDEPLOY,
        description="The kind of the event while the host has an alarm. `Preempt` drains outside of "
        "windows and budgets.",
    )

    @model_validator(mode="after")
    def _known_kinds(self) -> EsxSource:
        chosen = {"maintenance": self.maintenance, "alarm": self.alarm}
        found = [
            Mistake((key,), f"is {kind}, which is not maintenance of a host; write Reboot or Redeploy")
            for key, kind in chosen.items()
            if kind in (Kind.UNKNOWN, Kind.REBALANCE)
        ]
        if self.every < OFTEN:
            found.append(Mistake(("every",), "is shorter than 10s; each query lists all hosts"))
        if found:
            raise Mistakes(tuple(found))
        return self

    @property
    def polled(self) -> VCenters:
        """What is asked of vCenter servers."""
        return VCenters(self.enabled and bool(self.vcenters), self.every, self.vcenters, self.alarms)


class _Source(SourceSection[EsxSource], frozen=True, kw_only=True):
    def warnings(self, settings: Settings, now: datetime) -> Iterator[KeyWarning]:
        del now
        for index, server in enumerate(self.of(settings).vcenters):
            if server.insecure:
                message = "is true: whoever is on the way to it can read the password, and report maintenance"
                change = "name its certificate authority (caFile)"
                yield KeyWarning(f"sources.esx.vcenters[{index}].insecure", message, change)


SECTION = _Source(
    key="esx",
    type=EsxSource,
    default=EsxSource(),
    description="Maintenance and alarms of ESX hosts. See docs/esx.md.",
)


class Esx(Section):
    """What is done with the nodes of ESX hosts beside their drain."""

    enabled: Flag = Field(
        default=False,
        description="Whether nodes get the labels of maintenance-controller's ESX controller. The VMs "
        'of drained nodes with the label `cloud.sap/esx-reboot-ok: "true"` are then '
        "powered off with their host, and on again after its maintenance. It needs "
        "`sources.esx.vcenters`.",
    )
    shutdown_timeout: Duration = Field(
        default=timedelta(minutes=2),
        description="How long a guest may take to shut down; then its VM is powered off.",
    )


_KEYS = {"Labels": (LABEL, VERSION), "Annotations": (INITIATED,)}
"""What it writes on nodes, by the list of the admission policy."""


class _Power(FeatureSection[Esx], frozen=True, kw_only=True):
    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        if self.of(settings).enabled and not SECTION.of(settings).polled.enabled:
            message = "needs sources.esx.enabled, and entries in sources.esx.vcenters"
            yield Mistake(("esx", "enabled"), message)

    def grants(self, settings: Settings) -> Grants:
        return Grants(keys=_KEYS) if self.of(settings).enabled else Grants()


POWER = _Power(
    key="esx",
    type=Esx,
    default=Esx(),
    description="Labels of nodes on ESX hosts, and the power of their VMs. See docs/esx.md.",
)

SECTIONS = (SECTION, POWER)

ORIGINALS = (ESX_YAML,)
