"""The page about workflows: a heading for each trigger, with an example that loads and with every key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from reconciler.features.workflows import trigger_types
from reconciler.features.workflows.settings import PROFILES
from reconciler.features.workflows.triggers import TRIGGER_TYPES
from reconciler.settings.load import parse_settings
from reconciler.settings.loose import LooseSection
from tests.features.workflows.test_docs_checks import examples, indented

PAGE = (Path(__file__).parents[3] / "docs" / "workflows.md").read_text(encoding="utf-8")
TRIGGERS = PAGE.partition("\n## Triggers\n")[2].partition("\n## ")[0]
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^###|\Z)", TRIGGERS, re.MULTILINE | re.DOTALL))


def test_each_heading_is_a_trigger_and_each_trigger_has_a_heading() -> None:
    assert set(SECTIONS) == set(TRIGGER_TYPES) == set(trigger_types.TRIGGER_TYPES)


@pytest.mark.parametrize("name", sorted(TRIGGER_TYPES))
def test_each_trigger_has_an_example_that_loads_without_a_key_too_many(name: str) -> None:
    (example,) = examples(SECTIONS[name])
    ((instance),) = yaml.safe_load(example)
    assert instance["type"] == name

    settings = parse_settings(f"profiles:\n  instances:\n    trigger:\n{indented(example)}", "workflows.md")

    (trigger,) = PROFILES.of(settings).instances.trigger
    assert isinstance(trigger.settings, LooseSection)
    assert type(trigger.settings) is trigger_types.TRIGGER_TYPES[name]
    assert not trigger.settings.model_extra


@pytest.mark.parametrize("name", sorted(TRIGGER_TYPES))
def test_each_key_is_described(name: str) -> None:
    keys = {str(field.alias) for field in trigger_types.TRIGGER_TYPES[name].model_fields.values()}

    assert {key for key in keys if f"`{key}`" not in SECTIONS[name]} == set()
