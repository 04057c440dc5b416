"""The configurations of triggers in workflows, with the names that maintenance-controller gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from reconciler.calendar.values import literal
from reconciler.features.workflows.services import Value
from reconciler.model.selector import KEY, VALUE
from reconciler.settings.fields import fields_of
from reconciler.settings.loose import GoDuration, LooseFlag, LooseSection, LooseText, LooseTexts
from reconciler.settings.yaml import GoFloat

_KEY, _VALUE = re.compile(KEY), re.compile(VALUE)


def _key(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not _KEY.fullmatch(text):
        raise ValueError(f"{literal(value)} is not a key of Kubernetes, like example.com/name")
    return text


def _value(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else value
    text = str(text) if isinstance(text, int | GoFloat) else text
    if not isinstance(text, str) or not _VALUE.fullmatch(text):
        raise ValueError(f"{literal(value)} is not a value that a label can have")
    return text


_TEXT = {"type": ["string", "number", "boolean"]}
KeyName = Annotated[str, PlainValidator(_key), WithJsonSchema({"type": "string"})]
LabelValue = Annotated[str, PlainValidator(_value), WithJsonSchema(_TEXT)]


class AlterLabel(LooseSection):
    """alterLabel: adds, changes or removes a label of the node."""

    key: KeyName = Field(description="The key of the label.")
    value: LabelValue = Field(default="", description="The value to set.")
    remove: LooseFlag = Field(default=False, description="Whether to remove the label.")


class AlterAnnotation(LooseSection):
    """alterAnnotation: adds, changes or removes an annotation of the node."""

    key: KeyName = Field(description="The key of the annotation.")
    value: LooseText = Field(default="", description="The value to set.")
    remove: LooseFlag = Field(default=False, description="Whether to remove the annotation.")


class AlterFinalizer(LooseSection):
    """alterFinalizer: adds or removes a finalizer of the node."""

    key: KeyName = Field(description="The name of the finalizer.")
    remove: LooseFlag = Field(default=False, description="Whether to remove the finalizer.")


class TaintEffect(StrEnum):
    """The effects of a taint."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class AlterTaint(LooseSection):
    """taint: adds, changes or removes a taint of the node."""

    key: KeyName = Field(description="The key of the taint.")
    value: LabelValue = Field(default="", description="The value of the taint.")
    effect: TaintEffect = Field(default=TaintEffect.NO_SCHEDULE, description="The effect of the taint.")
    remove: LooseFlag = Field(
        default=False, description="Whether to remove the taint with this key and effect."
    )


class Cordoning(LooseSection):
    """cordon and uncordon: they have no keys."""


class Draining(LooseSection):
    """drain: evicts the pods of the node."""

    only_limits = True
    without_effect = MappingProxyType(
        {"deletionTimeout": ("has no effect, as in maintenance-controller itself", "remove it")}
    )

    eviction_timeout: GoDuration = Field(
        default=timedelta(minutes=10),
        description="How long one attempt takes. After it, a Warning Event names the failure, and the drain "
        "goes on with the next attempt.",
    )
    force_eviction: LooseFlag = Field(
        default=False,
        description="Whether a pod that is terminating is deleted with grace period 0, when it still exists "
        "one more grace period after its own. Evictions always respect PodDisruptionBudgets.",
    )


class EvictionAction(StrEnum):
    """What the trigger `eviction` does."""

    CORDON = "cordon"
    UNCORDON = "uncordon"
    DRAIN = "drain"


class Eviction(Draining):
    """eviction: cordons, uncordons or drains the node."""

    action: EvictionAction = Field(description="What to do with the node.")


class AlterHypervisor(LooseSection):
    """alterHypervisor: sets fields in the spec of the Hypervisor of the node."""

    # maintenance-controller refuses other keys, too.
    model_config = ConfigDict(extra="forbid")

    aggregates: LooseTexts | None = Field(default=None, description="The names of the aggregates.")
    allowed_projects: LooseTexts | None = Field(
        default=None, description="The IDs of the projects that may use it."
    )
    create_cert_manager_certificate: LooseFlag | None = Field(
        default=None, description="Whether cert-manager issues a certificate for libvirt."
    )
    custom_traits: LooseTexts | None = Field(default=None, description="The traits to add.")
    evacuate_on_reboot: LooseFlag | None = Field(
        default=None, description="Whether all instances leave before a reboot."
    )
    high_availability: LooseFlag | None = Field(
        default=None, description="Whether the high availability of instances is on."
    )
    install_certificate: LooseFlag | None = Field(
        default=None, description="Whether certificates are installed."
    )
    lifecycle_enabled: LooseFlag | None = Field(
        default=None, description="Whether the operator manages the hypervisor."
    )
    maintenance: LooseText | None = Field(
        default=None,
        description="The mode of maintenance: `manual`, `auto`, `ha`, `termination`, or empty for none.",
    )
    maintenance_reason: LooseText | None = Field(
        default=None, description="The reason, which `manual` needs."
    )
    reboot: LooseFlag | None = Field(default=None, description="Whether to reboot after an upgrade.")
    skip_tests: LooseFlag | None = Field(default=None, description="Whether onboarding has no tests.")
    version: LooseText | None = Field(default=None, description="The version of the operating system.")

    @model_validator(mode="after")
    def _has_a_field(self) -> AlterHypervisor:
        if not self.fields:
            raise ValueError("names no field of the spec, such as maintenance")
        return self

    @property
    def fields(self) -> Mapping[str, Value]:
        """The fields to set, with their values."""
        return fields_of(self)


TRIGGER_TYPES: Mapping[str, type[LooseSection]] = MappingProxyType(
    {
        "alterAnnotation": AlterAnnotation,
        "alterFinalizer": AlterFinalizer,
        "alterHypervisor": AlterHypervisor,
        "alterLabel": AlterLabel,
        "cordon": Cordoning,
        "drain": Draining,
        "eviction": Eviction,
        "taint": AlterTaint,
        "uncordon": Cordoning,
    }
)
"""The section of each type's configuration, by the name of the type."""
