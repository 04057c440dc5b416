"""docs/metrics.md has a row for each family of metrics, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from jobs.runtime.metrics import Family, Type
from reconciler.features.metrics.catalogue import FAMILIES, PREFIX
from tests.features.metrics.cardinality import table

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
# The node agent has a process, and a test, of its own.
ROW = re.compile(rf"^\| `({PREFIX}(?!agent_)\w+)` \| (\w+) \|([^|]*)\| \S", re.MULTILINE)


def shown(family: Family) -> tuple[str, str, tuple[str, ...]]:
    return family.name, str(family.type), family.labels


def test_every_family_has_a_row_with_its_type_and_labels_and_every_row_is_a_family() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))

    written = [(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows]
    assert written == [shown(family) for family in FAMILIES]


def test_names_end_as_prometheus_wants_it() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert family.name.endswith("_total") == (family.type is Type.COUNTER), family.name
        assert family.name.endswith("_seconds") == (family.unit == "seconds"), family.name
        assert bool(family.bounds) == (family.type is Type.HISTOGRAM), family.name
        assert family.help.endswith("."), family.name


def test_the_number_of_series_is_the_one_that_the_page_has() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
