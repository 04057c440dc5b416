"""Registration of checks and triggers: a decorator registers a plugin under the name that profiles use.

Checks are in `profiles/checks/`, triggers in `profiles/triggers/`, one file for each family. Both packages
import all of their modules, so a new plugin needs only its decorator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct

from reconciler.model.holds import WaitsFor
from reconciler.model.plan import CheckAnswer, Hold, Verdict
from reconciler.profiles.situation import Situation, Trigger

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names that a profile can use."""

_Plugin = TypeVar("_Plugin")


class CheckResult(Struct, frozen=True):
    """The result of a check, made by `passed`, `failed` or `unknown`. The fields are those of CheckAnswer."""

    verdict: Verdict
    reason: str
    until: datetime | None = None
    holds: bool = True


_PASSED = CheckResult(Verdict.PASSED, "")


def passed(reason: str = "", until: datetime | None = None, *, holds: bool = True) -> CheckResult:
    """Return a passed result and, if known, the moment at which it changes (UTC).

    `holds` False means that a failure would be no reason to wait.
    """
    if not reason and until is None and holds:
        return _PASSED
    return CheckResult(Verdict.PASSED, reason, until, holds)


def failed(reason: str, until: datetime | None = None, *, holds: bool = True) -> CheckResult:
    """Return a failed result with its reason and, if known, the moment at which it changes (UTC)."""
    return CheckResult(Verdict.FAILED, reason, until, holds)


def unknown(reason: str, until: datetime | None = None, *, holds: bool = True) -> CheckResult:
    """Return an unknown result with its reason and, if known, the moment at which it changes (UTC)."""
    return CheckResult(Verdict.UNKNOWN, reason, until, holds)


class RegisteredCheck(Struct, frozen=True, dict=True):
    """A check with its name: a function of the situation.

    `ordinarily` is the sentence for an answer that gives no reason.
    """

    name: str
    ask: Callable[[Situation], CheckResult]
    waits_for: WaitsFor
    ordinarily: str = ""

    def __call__(self, situation: Situation) -> CheckAnswer:
        """Return the check's answer. It always has words: behind a `!`, a check that passes holds."""
        found = self.ask(situation)
        return self._plain_pass if found is _PASSED else self._answer(found)

    @cached_property
    def _plain_pass(self) -> CheckAnswer:
        # Most answers are this one, so it is made once.
        return self._answer(_PASSED)

    def _answer(self, found: CheckResult) -> CheckAnswer:
        return CheckAnswer(
            self.name,
            found.verdict,
            found.reason,
            found.until,
            found.holds,
            self.waits_for,
            self.ordinarily,
        )

    def hold(self, node: str, reason: str) -> Hold:
        """Return a hold of this check, for a stage that reaches the same result by itself."""
        return Hold(node, self.name, reason, waits_for=self.waits_for)


_checks: dict[str, RegisteredCheck] = {}
_triggers: dict[str, Trigger] = {}


def registered_checks() -> Mapping[str, RegisteredCheck]:
    """Return every check by its name, sorted by name."""
    return MappingProxyType(dict(sorted(_checks.items())))


def registered_triggers() -> Mapping[str, Trigger]:
    """Return every trigger by its name, sorted by name."""
    return MappingProxyType(dict(sorted(_triggers.items())))


def check(
    name: str, *, ordinarily: str = "", waits_for: WaitsFor = WaitsFor.OTHER
) -> Callable[[Callable[[Situation], CheckResult]], RegisteredCheck]:
    """Register a function as the check `name`; raises ValueError if the name is taken or invalid.

    `ordinarily` is the sentence for `passed()`: a check that ever passes without a reason needs it.
    """

    def register(ask: Callable[[Situation], CheckResult]) -> RegisteredCheck:
        return _add(_checks, name, RegisteredCheck(name, ask, waits_for, ordinarily))

    return register


def trigger(name: str) -> Callable[[Trigger], Trigger]:
    """Register a function as the trigger `name`; raises ValueError if the name is taken or invalid."""

    def register(do: Trigger) -> Trigger:
        return _add(_triggers, name, do)

    return register


def _add(known: dict[str, _Plugin], name: str, plugin: _Plugin) -> _Plugin:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r}: a profile cannot name this plugin")
    if name in known:
        raise ValueError(f"{name}: two plugins have this name")
    known[name] = plugin
    return plugin


def import_plugins(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, sorted by name, so that its plugins register."""
    for name in sorted(module.name for module in iter_modules(path)):
        import_module(f"{package}.{name}")
