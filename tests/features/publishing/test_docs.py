"""What others are shown has its heading: annotations, conditions, columns, values and states."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from reconciler.features.publishing.drainsafe import Drainsafe
from reconciler.features.publishing.feature import FEATURE
from reconciler.features.publishing.objects import Stage
from reconciler.features.publishing.settings import Sign
from reconciler.settings.schema import Settings
from tests.docs.pages import headings, written

ROOT = Path(__file__).parents[3]


def definition() -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "k8s" / "crd" / "nodemaintenances.yaml").read_text(encoding="utf-8"))
    version: dict[str, Any] = found["spec"]["versions"][0]
    return version


def test_every_annotation_condition_and_column_has_its_heading() -> None:
    columns = {one["name"] for one in definition()["additionalPrinterColumns"] if "priority" not in one}

    assert FEATURE.reads is not None
    signs = FEATURE.reads(Settings())
    assert signs.annotations | signs.conditions | columns <= headings("publishing.md")


def test_every_value_and_every_state_is_documented() -> None:
    page = written("publishing.md")
    words = definition()["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["state"]
    states = re.findall(r"[A-Z]\w+", words["description"])

    assert {text for text in (*Drainsafe, *Sign, *states) if f"`{text}`" not in page} == set()
    assert set(states) == set(Stage)
