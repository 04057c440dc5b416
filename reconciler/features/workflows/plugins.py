"""Registration of check types: a decorator registers a function under the `type` that instances name.

The configuration of a type is a section of the settings, in `reconciler/settings/sections/check_types.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct

from reconciler.features.workflows.input import CheckInput
from reconciler.model.workflow import LeaseTake, Needs
from reconciler.profiles.plugins import CheckResult
from reconciler.settings.fields import Section

_Config = TypeVar("_Config", bound=Section)

Ask = Callable[[_Config, CheckInput], CheckResult]
Takes = Callable[[_Config, CheckInput], LeaseTake | None]


class CheckType(Struct, frozen=True):
    """A type of check: how it answers, and what it needs beyond the nodes.

    `takes` returns the Lease that the node takes when a transition with this check really happens, None if it
    takes none. The engine asks it for every check of the transition, with the input of the check's answer.
    """

    name: str
    config: type[Section]
    ask: Ask[Any]
    needs: Callable[[Any], Needs]
    takes: Takes[Any]


_check_types: dict[str, CheckType] = {}


def check_types() -> Mapping[str, CheckType]:
    """Return every check type by its name, sorted by name."""
    return MappingProxyType(dict(sorted(_check_types.items())))


def check_type(
    name: str,
    config: type[_Config],
    needs: Callable[[_Config], Needs] | None = None,
    takes: Takes[_Config] | None = None,
) -> Callable[[Ask[_Config]], Ask[_Config]]:
    """Register a function as the check type `name`; raises ValueError if the name is taken.

    The function gets the configuration and the input, and returns passed, failed or unknown with a reason,
    and the moment at which the answer changes, where it can tell.
    """

    def register(ask: Ask[_Config]) -> Ask[_Config]:
        if name in _check_types:
            raise ValueError(f"{name}: two check types have this name")
        _check_types[name] = CheckType(
            name, config, ask, needs or (lambda _: Needs()), takes or (lambda _config, _input: None)
        )
        return ask

    return register
