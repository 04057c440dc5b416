"""Notifications of workflows: each type has an example that loads, and each of its keys is described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.features.workflows.notify_types import NOTIFY_TYPES, SCHEDULE_TYPES
from reconciler.features.workflows.settings import PROFILES
from reconciler.settings.load import parse_settings
from reconciler.settings.loose import LooseSection

PAGE = (Path(__file__).parents[3] / "docs" / "workflows.md").read_text(encoding="utf-8")
NOTIFICATIONS = PAGE.partition("\n## Notifications\n")[2].partition("\n## ")[0]
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^###|\Z)", NOTIFICATIONS, re.MULTILINE | re.DOTALL))


def test_each_heading_is_a_type_of_notification_and_each_type_has_a_heading() -> None:
    assert set(SECTIONS) == {*NOTIFY_TYPES, "Schedules"}


@pytest.mark.parametrize("name", sorted(NOTIFY_TYPES))
def test_each_type_has_an_example_that_loads_without_a_key_too_many(name: str) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", SECTIONS[name], re.DOTALL)

    (instance,) = PROFILES.of(parse_settings(example, "workflows.md")).instances.notify

    assert isinstance(instance.settings, LooseSection)
    assert type(instance.settings) is NOTIFY_TYPES[name]
    assert not instance.settings.model_extra


@pytest.mark.parametrize("name", sorted(NOTIFY_TYPES))
def test_each_key_is_described(name: str) -> None:
    keys = {str(field.alias) for field in NOTIFY_TYPES[name].model_fields.values()}

    assert {key for key in keys if f"`{key}`" not in SECTIONS[name]} == set()


@pytest.mark.parametrize("name", sorted(SCHEDULE_TYPES))
def test_each_schedule_is_in_an_example(name: str) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", NOTIFICATIONS, re.DOTALL)
    found = [one for text in examples for one in PROFILES.of(parse_settings(text, "x")).instances.notify]

    assert name in {one.schedule.type for one in found}
