"""Registration of trigger types, and what a trigger reads and returns.

A trigger changes values: the node as it should be, and its record. `decide` makes one patch of all changes.
The configuration of a type is a section of the settings, in `reconciler/settings/sections/trigger_types.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct, field

from reconciler.model.node import Node
from reconciler.model.record import Claim, Record
from reconciler.model.workflow import HypervisorWrite, ReadForChecks
from reconciler.settings.loose import LooseSection

_Config = TypeVar("_Config", bound=LooseSection)


class Worked(Struct, frozen=True):
    """A node and its record as the triggers so far leave them.

    `waits` is why the chain can't go on now, empty if it can. `hypervisor` is what changes on the node's
    Hypervisor, None if nothing does.
    """

    node: Node
    record: Record
    waits: str = ""
    hypervisor: HypervisorWrite | None = None


class TriggerInput(Struct, frozen=True):
    """What a trigger reads: the work so far, the claim of its profile, and the moment (UTC, whole seconds).

    `resumed` says that the chain has waited for the drain of the node, and runs again. `read` is what the
    pass has read for workflows. `taken_over` says that maintenance-controller began the chain.
    """

    work: Worked
    claim: Claim
    now: datetime
    resumed: bool = False
    read: ReadForChecks = field(default_factory=ReadForChecks)
    taken_over: bool = False


Do = Callable[[_Config, TriggerInput], Worked]
Missing = Callable[[_Config, TriggerInput], str]


class TriggerType(Struct, frozen=True):
    """A type of trigger, with the function that carries it out on values.

    `missing` returns why it can't be carried out now, empty if it can. A chain begins only if none of its
    triggers misses anything: one that stops after its drain would drain the node again in the next pass.
    """

    name: str
    do: Do[Any]
    missing: Missing[Any]


_trigger_types: dict[str, TriggerType] = {}


def trigger_types() -> Mapping[str, TriggerType]:
    """Return every trigger type by its name, sorted by name."""
    return MappingProxyType(dict(sorted(_trigger_types.items())))


def trigger_type(
    name: str, config: type[_Config], missing: Missing[_Config] | None = None
) -> Callable[[Do[_Config]], Do[_Config]]:
    """Register a function as the trigger type `name`; raises ValueError if the name is taken.

    `config` is the section of its configuration, which the function gets with the input.
    """
    del config  # For the type checker: it is that of the function.

    def register(do: Do[_Config]) -> Do[_Config]:
        if name in _trigger_types:
            raise ValueError(f"{name}: two trigger types have this name")
        _trigger_types[name] = TriggerType(name, do, missing or (lambda _config, _input: ""))
        return do

    return register
