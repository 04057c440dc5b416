"""The key `acknowledge` of a kind: its default, where it may stand, what is said of it."""

from __future__ import annotations

import pytest

from reconciler.model.errors import SettingsError
from reconciler.model.event import Kind
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.sources.imds.settings import ACKNOWLEDGES


def read(text: str) -> Settings:
    return parse_settings(text, "maintenance.yaml")


def test_nothing_is_acknowledged_by_default() -> None:
    policies = read("").policies({})

    assert not any(ACKNOWLEDGES.in_policy(policies.of_kind(kind)) for kind in Kind)


def test_a_condition_can_not_be_acknowledged() -> None:
    with pytest.raises(SettingsError) as raised:
        read("conditions: {KernelDeadlock: {acknowledge: true}}")

    (mistake,) = raised.value.mistakes
    assert "KernelDeadlock.acknowledge: unknown key" in mistake


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("acknowledge: true", "Once drained it is acknowledged."),
        ("acknowledge: true", "start early only if all of them can start together."),
        ("acknowledge: true, start: Late", "It starts late, because start is Late."),
        (
            "acknowledge: true, replace: true",
            "Once drained the machine is replaced. It starts early where it can be acknowledged or replaced",
        ),
    ],
)
def test_what_comes_of_it_is_explained(text: str, said: str) -> None:
    assert said in explain_settings(read(f"events: {{Reboot: {{{text}}}}}"))
