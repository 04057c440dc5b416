"""Types of checks and triggers: a decorator registers a function under the name that profiles use.

A `Vocabulary` has those that the profiles of one kind may name. That of the platform's profile is in
the package `profiles/checks/`, one file for each family, and in `profiles/triggers.py`. The package imports
all of its modules, so a new check needs only its decorator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from msgspec import Struct

from reconciler.model.holds import HoldKind
from reconciler.model.instructions import Wait
from reconciler.model.outcome import WaitsFor
from reconciler.model.plan import CheckAnswer, Hold, Verdict
from reconciler.model.steps import HeldStep

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names that a profile can use."""

_Plugin = TypeVar("_Plugin")
_Do = TypeVar("_Do", bound=Callable[..., Any])


class CheckResult(Struct, frozen=True):
    """The result of a check, made by `passed`, `failed` or `unknown`. The fields are those of CheckAnswer."""

    verdict: Verdict
    reason: str
    until: datetime | None = None
    holds: bool = True
    who: str = ""
    by_itself: bool = False


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


class CheckType(Struct, frozen=True):
    """A type of check: a function of the configuration, if it has one, and the situation.

    `ordinarily` is the sentence for an answer that gives no reason. `who`, `by_itself`, `waits` and
    `by_person` are those of its kind of hold. `waived`: a drain that a person begins now does without it, as
    without each `wait`. No profile names a check with one of these: `starts`, each start of a drain asks it;
    `wait`, it holds a start for what this function returns, see `instructed.py`, and the forecast knows until
    when; `step`, it holds this step of a case on which the drain has begun.
    """

    name: str
    ask: Callable[..., CheckResult]
    config: Any = None
    waits_for: WaitsFor = WaitsFor.OTHER
    ordinarily: str = ""
    who: str = ""
    by_itself: bool = False
    waits: bool = False
    by_person: bool = False
    waived: bool = False
    starts: bool = False
    wait: Callable[..., Wait | None] | None = None
    step: HeldStep | None = None

    @property
    def kind(self) -> HoldKind:
        """Its kind of hold."""
        return HoldKind(self.name, self.who, self.by_itself, self.waits, self.by_person)

    def hold(self, node: str, reason: str) -> Hold:
        """Return a hold of this check, for a stage that reaches the same result by itself."""
        return Hold(node, self.name, reason, waits_for=self.waits_for)


_Facts = ParamSpec("_Facts")
_Kind = TypeVar("_Kind", bound=CheckType)


class Check(Struct, frozen=True, dict=True):
    """A check under the name that profiles use, with its configuration."""

    name: str
    type: CheckType
    config: Any = None

    def __call__(self, situation: Any) -> CheckAnswer:
        """Return the check's answer. It always has words: behind a `!`, a check that passes holds."""
        ask = self.type.ask
        result = ask(situation) if self.type.config is None else ask(self.config, situation)
        return self._plain_pass if result is _PASSED else self.answer(result)

    @cached_property
    def _plain_pass(self) -> CheckAnswer:
        # Most answers are this one, so it is made once.
        return self.answer(_PASSED)

    def answer(self, result: CheckResult) -> CheckAnswer:
        """Return this result as the check's answer."""
        return CheckAnswer(
            self.name,
            result.verdict,
            result.reason,
            result.until,
            result.holds,
            self.type.waits_for,
            self.type.ordinarily,
            result.who,
            result.by_itself,
        )


def _nothing(_config: Any, _situation: Any, _work: Any) -> str:
    return ""


class TriggerType(Struct, frozen=True):
    """A type of trigger: a function of the configuration, if it has one, the situation and the work so far.

    It returns the work with its own. `missing` returns why it can't be carried out now, empty if it can. A
    chain begins only if none of its triggers misses anything: one that stops after its drain would drain the
    node again in the next pass.
    """

    name: str
    do: Callable[..., Any]
    config: Any = None
    missing: Callable[..., str] = _nothing


class Trigger(Struct, frozen=True):
    """A trigger under the name that profiles use, with its configuration."""

    name: str
    type: TriggerType
    config: Any = None

    def __call__(self, situation: Any, work: Any) -> Any:
        """Return the work with that of this trigger."""
        do = self.type.do
        return do(situation, work) if self.type.config is None else do(self.config, situation, work)

    def missing(self, situation: Any, work: Any) -> str:
        """Return why the trigger can't be carried out now, empty if it can."""
        return self.type.missing(self.config, situation, work)


class Vocabulary(Generic[_Facts, _Kind]):
    """The types of checks and triggers that profiles may name, by name."""

    def __init__(
        self, kind: Callable[Concatenate[str, Callable[..., CheckResult], Any, _Facts], _Kind]
    ) -> None:
        """Begin without any. `kind` is the class of the checks."""
        self._kind = kind
        self._checks: dict[str, _Kind] = {}
        self._triggers: dict[str, TriggerType] = {}

    @property
    def checks(self) -> Mapping[str, _Kind]:
        """Every type of check, sorted by name."""
        return dict(sorted(self._checks.items()))

    @property
    def triggers(self) -> Mapping[str, TriggerType]:
        """Every type of trigger, sorted by name."""
        return dict(sorted(self._triggers.items()))

    def check(
        self, name: str, config: type[Any] | None = None, *args: _Facts.args, **facts: _Facts.kwargs
    ) -> Callable[[Callable[..., CheckResult]], _Kind]:
        """Register a function as the check `name`; raises ValueError if the name is taken or invalid.

        The other arguments are the fields of its kind. A check that ever passes without a reason needs
        `ordinarily`.
        """

        def register(ask: Callable[..., CheckResult]) -> _Kind:
            return _add(self._checks, name, self._kind(name, ask, config, *args, **facts))

        return register

    def trigger(
        self, name: str, config: type[Any] | None = None, missing: Callable[..., str] = _nothing
    ) -> Callable[[_Do], _Do]:
        """Register a function as the trigger `name`; raises ValueError if the name is taken or invalid."""

        def register(do: _Do) -> _Do:
            _add(self._triggers, name, TriggerType(name, do, config, missing))
            return do

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


PLATFORM = Vocabulary(CheckType)
"""That of the profile for events of the platform."""

check, trigger = PLATFORM.check, PLATFORM.trigger
