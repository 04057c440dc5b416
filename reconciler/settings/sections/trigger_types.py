"""The configurations of triggers in workflows, with the names that maintenance-controller gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema

from reconciler.calendar.values import literal
from reconciler.model.selector import KEY, VALUE
from reconciler.settings.sections.loose_fields import GoDuration, LooseFlag, LooseText
from reconciler.settings.sections.loose_section import LooseSection

_KEY, _VALUE = re.compile(KEY), re.compile(VALUE)


def _key(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not _KEY.fullmatch(text):
        raise ValueError(f"{literal(value)} is not a key of Kubernetes, like example.com/name")
    return text


def _value(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else value
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

    eviction_timeout: GoDuration = Field(
        default=timedelta(minutes=10),
        description="How long one attempt evicts pods. After it the drain starts again, or deletes the pods "
        "that are left (`forceEviction`).",
    )
    deletion_timeout: GoDuration = Field(
        default=timedelta(minutes=10),
        description="How long one attempt deletes pods, with `forceEviction`.",
    )
    force_eviction: LooseFlag = Field(
        default=False,
        description="Whether the pods that are left after `evictionTimeout` are deleted. A deletion ignores "
        "PodDisruptionBudgets.",
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
    """alterHypervisor: changes the Hypervisor object of the node. It is not supported."""


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
