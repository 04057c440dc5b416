"""The page about checks: a heading for each type, with an example that loads and with every key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.features.workflows.check_types import CheckConfig
from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.settings import PROFILES
from reconciler.settings.load import parse_settings
from tests.features.workflows.holds import example_of_type

FILE = Path(__file__).parents[3] / "docs" / "checks.md"
PAGE = FILE.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def examples(section: str) -> list[str]:
    """The instances in a section."""
    return [block for block in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL) if "- type:" in block]


def indented(example: str) -> str:
    """An example as it stands in a file of settings, below `instances`."""
    return "".join(f"    {line}\n" for line in example.splitlines())


def keys(config: type[CheckConfig]) -> Iterator[str]:
    """The keys of a configuration, those of its parts included."""
    for field in config.model_fields.values():
        yield str(field.alias)
        for part in getattr(field.annotation, "__args__", ()):
            if isinstance(part, type) and issubclass(part, CheckConfig):
                yield from keys(part)


def test_each_heading_is_a_type_and_each_type_has_a_heading() -> None:
    assert set(SECTIONS) == set(CHECK_TYPES)


@pytest.mark.parametrize("name", sorted(CHECK_TYPES))
def test_each_type_has_an_example_that_loads_without_a_key_too_many(name: str) -> None:
    (example,) = examples(SECTIONS[name])
    ((instance),) = yaml.safe_load(example)
    assert instance["type"] == name

    settings = parse_settings(f"profiles:\n  instances:\n    check:\n{indented(example)}", "checks.md")

    (check,) = PROFILES.of(settings).instances.check
    assert isinstance(check.settings, CheckConfig)
    assert type(check.settings) is CHECK_TYPES[name].config


@pytest.mark.parametrize("name", sorted(CHECK_TYPES))
def test_each_type_shows_what_it_prints_and_who_can_change_that(name: str) -> None:
    printed = rf"(^- type: {name}\n(?:[^`]+\n)?```\n\n```text\n)(.*?)```"
    (quoted,) = re.findall(printed, PAGE, re.MULTILINE | re.DOTALL)
    if os.environ.get("GOLDEN") == "write" and quoted[1] != example_of_type(name):
        page = FILE.read_text(encoding="utf-8")
        text = f"{quoted[0]}{example_of_type(name)}```"
        FILE.write_text(re.sub(printed, lambda _: text, page, flags=re.M | re.S), encoding="utf-8")
        return

    assert quoted[1] == example_of_type(name)
    assert "`" in CHECK_TYPES[name].who or CHECK_TYPES[name].by_itself


@pytest.mark.parametrize("name", sorted(CHECK_TYPES))
def test_each_key_is_described(name: str) -> None:
    config: Any = CHECK_TYPES[name].config

    assert {key for key in keys(config) if f"`{key}`" not in SECTIONS[name]} == set()
