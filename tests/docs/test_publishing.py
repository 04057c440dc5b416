"""What others are shown, and what AWS says, has its heading: annotations, conditions, columns, codes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.features.publishing.drainsafe import Drainsafe
from reconciler.features.publishing.registry import PUBLISHING
from reconciler.model.maintenance import Stage
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.settings.sections.others import Sign
from reconciler.sources.aws.source import CODES
from tests.docs.test_headings import headings, written

ROOT = Path(__file__).parents[2]


def definition() -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "k8s" / "crd" / "nodemaintenances.yaml").read_text(encoding="utf-8"))
    version: dict[str, Any] = found["spec"]["versions"][0]
    return version


def test_every_annotation_condition_and_column_has_its_heading() -> None:
    columns = {one["name"] for one in definition()["additionalPrinterColumns"] if "priority" not in one}

    assert PUBLISHING.reads is not None
    signs = PUBLISHING.reads(Settings())
    assert signs.annotations | signs.conditions | columns <= headings("publishing.md")


def test_every_value_and_every_state_is_documented() -> None:
    page = written("publishing.md")
    words = definition()["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["state"]
    states = re.findall(r"[A-Z]\w+", words["description"])

    assert {text for text in (*Drainsafe, *Sign, *states) if f"`{text}`" not in page} == set()
    assert set(states) == set(Stage)


def test_every_code_of_aws_and_every_date_has_its_heading() -> None:
    assert {*CODES, "NotBefore", "NotAfter", "NotBeforeDeadline"} <= headings("aws.md")


@pytest.mark.parametrize("page", ["publishing.md", "aws.md", "esx.md"])
def test_the_examples_are_right(page: str) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", written(page), re.DOTALL)
    assert examples
    for example in examples:
        parse_settings(example, page)
