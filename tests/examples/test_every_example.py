"""No example protects less than no settings at all: each tool's own document says that it drains nodes."""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind
from reconciler.settings.policies import DEFAULTS
from tests.examples.playing import example

EXAMPLES = ("mechanic", "drainsafe", "machine-maintenance")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_drains_for_all_that_is_drained_without_settings(name: str) -> None:
    policies = example(name).policies({})
    drained = {kind for kind in Kind if policies.of_kind(kind).drain}

    assert {kind for kind, policy in DEFAULTS.items() if policy.drain} <= drained


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_empties_no_node_early_that_only_the_platform_can_end(name: str) -> None:
    policies = example(name).policies({})

    assert all(policies.of_kind(kind).start is None for kind in Kind)
