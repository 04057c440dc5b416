"""Registration: plugins are known by the name of their decorator, and each has a row of tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.holds import HoldCode, WaitsFor
from reconciler.model.plan import CheckAnswer, Hold, Notice, Verdict
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.profiles import plugins
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.plugins import CheckResult, check, failed, import_plugins, passed, trigger
from reconciler.profiles.profile import parse_profile
from reconciler.profiles.situation import Effects, Situation
from reconciler.profiles.state_machine import walk
from reconciler.profiles.triggers import TRIGGERS
from tests.profiles.test_checks import ANSWERS
from tests.profiles.test_triggers import EFFECTS
from tests.support.builders import NOW, situation


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Forget what a test registers."""
    checks, triggers = dict(plugins._checks), dict(plugins._triggers)
    yield
    for known, before in ((plugins._checks, checks), (plugins._triggers, triggers)):
        known.clear()
        known.update(before)  # type: ignore[arg-type]  # each with its own


def test_every_check_answers_by_its_own_name_with_a_reason_where_it_does_not_pass() -> None:
    for name, registered in CHECKS.items():
        answer = registered(situation())

        assert answer.name == name
        assert answer.reason or answer.verdict.value == "passed"


def test_every_plugin_is_in_its_package_and_has_a_row_of_tests() -> None:
    modules = {
        "checks": [one.ask.__module__ for one in CHECKS.values()],
        "triggers": [one.__module__ for one in TRIGGERS.values()],
    }
    for folder, names in modules.items():
        assert all(name.startswith(f"reconciler.profiles.{folder}.") for name in names)
    assert ANSWERS.keys() == CHECKS.keys()
    assert EFFECTS.keys() == TRIGGERS.keys()


def test_a_decorated_function_is_a_check_that_answers_by_the_name_of_its_registration() -> None:
    @check("moonFull", waits_for=WaitsFor.PERMISSION)
    def moon_full(situation: Situation) -> CheckResult:
        return failed("the moon is new", situation.now, holds=False)

    expected = CheckAnswer("moonFull", Verdict.FAILED, "the moon is new", NOW, False, WaitsFor.PERMISSION)
    assert moon_full(situation()) == expected
    assert plugins.registered_checks()["moonFull"] is moon_full
    assert moon_full.hold("a", "dark") == Hold("a", "moonFull", "dark", waits_for=WaitsFor.PERMISSION)


def test_a_decorated_function_is_a_trigger_and_stays_a_function() -> None:
    @trigger("howl")
    def howl(_: Situation, effects: Effects) -> Effects:
        return effects

    assert plugins.registered_triggers()["howl"] is howl


@pytest.mark.parametrize("name", ["twice", "no name", "1st", "", "!not"])
def test_a_name_that_is_taken_or_that_no_profile_can_write_is_an_error(name: str) -> None:
    check("twice")(lambda _: passed())
    trigger("twice")(lambda _, effects: effects)

    with pytest.raises(ValueError, match=r"two plugins|cannot name"):
        check(name)(lambda _: passed())
    with pytest.raises(ValueError, match=r"two plugins|cannot name"):
        trigger(name)(lambda _, effects: effects)


def test_a_registered_check_and_trigger_work_as_soon_as_a_profile_names_them() -> None:
    @check("moonFull", waits_for=WaitsFor.PERMISSION)
    def moon_full(situation: Situation) -> CheckResult:
        return passed("full moon") if situation.own_node else failed("the moon is new")

    @trigger("howl")
    def howl(_: Situation, effects: Effects) -> Effects:
        return effects.with_notice(Notice("Howled", "awoo"))

    assert moon_full.name == "moonFull"
    checks, triggers = plugins.registered_checks(), plugins.registered_triggers()
    document = {
        "operational": {
            "transitions": [{"check": "moonFull", "trigger": "howl", "next": "maintenance-required"}]
        }
    }
    profile = parse_profile("default", document, checks, triggers)

    held = walk(profile, situation(), checks, triggers)
    moved = walk(profile, replace(situation(), own_node=True), checks, triggers)

    assert held.holds == (Hold("a", "moonFull", "the moon is new", waits_for=WaitsFor.PERMISSION),)
    assert [notice.reason for notice in moved.effects.notices] == ["Howled"]
    assert moved.state is State.REQUIRED


def test_no_check_is_called_as_a_hold_that_comes_from_no_check() -> None:
    assert not set(CHECKS) & set(HoldCode)


def test_every_module_of_a_package_is_imported_in_the_order_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "toy_plugins"
    package.mkdir()
    (package / "__init__.py").write_text("order = []\n", encoding="utf-8")
    for name in ("zeta", "alpha"):
        (package / f"{name}.py").write_text(
            f"import toy_plugins\ntoy_plugins.order.append({name!r})\n", encoding="utf-8"
        )
    monkeypatch.syspath_prepend(tmp_path)

    import_plugins("toy_plugins", [str(package)])

    toys = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("toy_plugins")}
    assert toys["toy_plugins"].order == ["alpha", "zeta"]
