"""The dashboard: current, with every metric of the catalogue and no other, and a place for each panel."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from jobs.runtime.metrics import Family, Type
from reconciler.features.metrics.catalogue import FAMILIES
from tests.monitoring.rules import MONITORING, grouped_labels, matched_labels, metrics_in
from website.dashboard import as_text, dashboard

PANELS = dashboard()["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
QUERIES = [target for panel in SHOWN for target in panel["targets"]]


def series(family: Family) -> set[str]:
    """The names of the series that an expression has to use."""
    return {f"{family.name}_bucket"} if family.type is Type.HISTOGRAM else {family.name}


LABELS = {name: set(family.labels) for family in FAMILIES for name in series(family)}


def title(panel: dict[str, Any]) -> str:
    return str(panel["title"])


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """What is in the first value and not in the second one."""
    if isinstance(before, dict):
        return [
            one
            for key, value in before.items()
            for one in (lost(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"])
        ]
    if isinstance(before, list):
        pairs = zip(before, after, strict=True)
        return [one for number, pair in enumerate(pairs) for one in lost(*pair, f"{path}[{number}]")]
    return [] if before == after else [path]


def test_the_file_is_current() -> None:
    written = (MONITORING / "dashboard.json").read_text(encoding="utf-8")

    assert written == as_text(), "run `nox -s docs`"


def test_every_metric_of_the_catalogue_is_shown_and_no_other() -> None:
    used = set().union(*(metrics_in(target["expr"]) for target in QUERIES))

    assert used == set(LABELS)


@pytest.mark.parametrize("target", QUERIES, ids=lambda target: target["expr"])
def test_an_expression_has_the_labels_of_its_metrics(target: dict[str, Any]) -> None:
    expression = target["expr"]
    own = set().union(*(LABELS[name] for name in metrics_in(expression)))

    assert {(name, label) for name, label in matched_labels(expression) if label not in LABELS[name]} == set()
    assert grouped_labels(expression) - own - {"le"} == set()
    # What has no label of that name shows nothing there.
    assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= grouped_labels(expression)


@pytest.mark.parametrize("panel", SHOWN, ids=title)
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["targets"]


def test_no_panel_lies_on_another_one() -> None:
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in PANELS)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_every_field_is_one_of_grafanas_own_types() -> None:
    register_default_plugins()

    read = Dashboard.from_json(dashboard())

    # A field that the types do not have is left out.
    assert lost(dashboard(), json.loads(JSONEncoder().encode(read))) == []


def test_it_fits_into_the_annotation_that_kubectl_apply_makes() -> None:
    assert len(as_text().encode()) < 128 * 1024
