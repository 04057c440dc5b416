"""Registration of check types: a decorator registers a function under the `type` that instances name.

The configuration of a type is a section of the settings, in `reconciler/settings/sections/check_types.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from reconciler.engine.plugins import CheckResult
from reconciler.settings.sections.section import Section
from reconciler.workflows.input import CheckInput, Needs

_Config = TypeVar("_Config", bound=Section)

Ask = Callable[[_Config, CheckInput], CheckResult]


@dataclass(frozen=True, slots=True)
class CheckType:
    """A type of check: how it answers, and what it needs beyond the nodes."""

    name: str
    config: type[Section]
    ask: Ask[Any]
    needs: Callable[[Any], Needs]


_check_types: dict[str, CheckType] = {}


def check_types() -> Mapping[str, CheckType]:
    """Return every check type by its name, sorted by name."""
    return MappingProxyType(dict(sorted(_check_types.items())))


def check_type(
    name: str, config: type[_Config], needs: Callable[[_Config], Needs] | None = None
) -> Callable[[Ask[_Config]], Ask[_Config]]:
    """Register a function as the check type `name`; raises ValueError if the name is taken.

    The function gets the configuration and the input, and returns passed, failed or unknown with a reason,
    and the moment at which the answer changes, where it can tell.
    """

    def register(ask: Ask[_Config]) -> Ask[_Config]:
        if name in _check_types:
            raise ValueError(f"{name}: two check types have this name")
        _check_types[name] = CheckType(name, config, ask, needs or (lambda _: Needs()))
        return ask

    return register
