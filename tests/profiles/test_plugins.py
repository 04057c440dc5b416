"""Registration: plugins are known by the name of their decorator, and each has a row of tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reconciler.model.expression import names
from reconciler.model.outcome import WaitsFor
from reconciler.model.plan import Hold, Notice
from reconciler.model.record import State
from reconciler.model.steps import HeldStep
from reconciler.model.values import replace
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.situation import Effects, Situation
from reconciler.profiles.state_machine import builtin, profile_of, walk
from reconciler.profiles.triggers import TRIGGERS
from reconciler.profiles.vocabulary import (
    Check,
    CheckResult,
    CheckType,
    Trigger,
    Vocabulary,
    failed,
    import_plugins,
    passed,
)
from reconciler.settings.profiles import ProfileSettings
from tests.profiles.test_checks import ANSWERS
from tests.profiles.test_triggers import EFFECTS
from tests.support.builders import situation


def test_every_check_answers_by_its_own_name_with_a_reason_where_it_does_not_pass() -> None:
    for name, check in CHECKS.items():
        answer = check(situation())

        assert answer.name == name
        assert answer.reason or answer.verdict.value == "passed"


def test_every_plugin_has_a_row_of_tests() -> None:
    # Those of features are tested with these.
    of_core = {name for name, check in CHECKS.items() if check.type.step is None and check.type.wait is None}
    assert ANSWERS.keys() == of_core
    assert EFFECTS.keys() == TRIGGERS.keys()


@pytest.mark.parametrize("name", ["twice", "no name", "1st", "", "!not"])
def test_a_name_that_is_taken_or_that_no_profile_can_write_is_an_error(name: str) -> None:
    toys = Vocabulary(CheckType)
    toys.check("twice")(lambda _: passed())
    toys.trigger("twice")(lambda _, work: work)

    with pytest.raises(ValueError, match=r"two plugins|cannot name"):
        toys.check(name)(lambda _: passed())
    with pytest.raises(ValueError, match=r"two plugins|cannot name"):
        toys.trigger(name)(lambda _, work: work)


def test_a_check_of_starts_is_asked_wherever_a_drain_may_start() -> None:
    toys = Vocabulary(CheckType)
    for name in ("game", "toy"):
        toys.check(name, starts=True)(lambda _: passed())
    checks = {name: Check(name, kind) for name, kind in toys.checks.items()}
    plain, asking = builtin("default", TRIGGERS), builtin("default", TRIGGERS, checks)

    for state, rules in plain.states.items():
        assert [step.text for step in asking.rules(state).transitions] == [
            f"{step.text} && game && toy" if "windowOpen" in names(step.check) else step.text
            for step in rules.transitions
        ]
    starts = [step for rules in asking.states.values() for step in rules.transitions if "toy" in step.text]
    assert {name for step in starts for name in (trigger.name for trigger in step.triggers)} == {
        *("prepare", "cordon", "drain")
    }


def test_a_registered_check_and_trigger_work_as_soon_as_a_profile_names_them() -> None:
    toys = Vocabulary(CheckType)

    @toys.check("moonFull", waits_for=WaitsFor.PERMISSION)
    def moon_full(situation: Situation) -> CheckResult:
        return passed("full moon") if situation.own_node else failed("the moon is new")

    @toys.trigger("howl")
    def howl(_: Situation, effects: Effects) -> Effects:
        return effects.with_notice(Notice("Howled", "awoo"))

    assert moon_full.hold("a", "dark") == Hold("a", "moonFull", "dark", waits_for=WaitsFor.PERMISSION)
    checks = {name: Check(name, kind) for name, kind in toys.checks.items()}
    triggers = {name: Trigger(name, kind) for name, kind in toys.triggers.items()}
    step = {"check": "moonFull", "trigger": "howl", "next": "maintenance-required"}
    profile = profile_of(
        ProfileSettings.model_validate({"name": "toy", "operational": {"transitions": [step]}}), triggers
    )

    held = walk(profile, situation(), checks)
    moved = walk(profile, replace(situation(), own_node=True), checks)

    assert held.holds == (Hold("a", "moonFull", "the moon is new", waits_for=WaitsFor.PERMISSION),)
    assert [notice.reason for notice in moved.effects.notices] == ["Howled"]
    assert moved.state is State.REQUIRED


def test_the_profile_of_the_package_names_every_check_and_none_that_does_not_exist() -> None:
    profile = builtin("default", TRIGGERS)

    steps = (step for state in State for step in profile.rules(state).transitions)
    # Each start and each step that is held asks the others, whatever its profile names.
    asked_anyway = {
        name for name, check in CHECKS.items() if check.type.starts or check.type.step or check.type.wait
    }
    named = CHECKS.keys() - asked_anyway
    assert {name for step in steps for name in names(step.check)} == named


def test_a_check_that_holds_a_step_is_asked_where_the_profile_names_the_step() -> None:
    toys = Vocabulary(CheckType)
    for step in HeldStep:
        toys.check(step.name.lower(), step=step)(lambda _: passed())
    checks = {name: Check(name, kind) for name, kind in toys.checks.items()}
    plain, held = builtin("default", TRIGGERS), builtin("default", TRIGGERS, checks)
    asked = {
        tuple(trigger.name for trigger in step.triggers): {*names(step.check)} - {*names(before.check)}
        for before, step in zip(
            plain.rules(State.IN_MAINTENANCE).transitions,
            held.rules(State.IN_MAINTENANCE).transitions,
            strict=True,
        )
    }

    assert asked["drain",] == asked["leaveOffers", "dismiss"] == set()
    assert asked["askPlatform",] == {"post_drain"}
    assert asked["leaveOffers", "uncordon"] == {"post_drain", "pre_uncordon"}


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
