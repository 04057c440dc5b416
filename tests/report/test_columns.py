"""The table of columns: one entry makes the document's key and what each form of the report shows."""

from __future__ import annotations

from reconciler.report.columns import COLUMNS, FOR_PEOPLE
from tests.report.scene import document


def test_every_key_of_a_nodes_document_is_one_column_in_the_tables_order() -> None:
    for node in document()["nodes"]:
        assert list(node) == [column.key for column in COLUMNS]
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)


def test_people_read_every_column_once() -> None:
    assert set(FOR_PEOPLE) == set(COLUMNS)
    assert len(FOR_PEOPLE) == len(COLUMNS)


def test_the_log_and_the_table_of_nodes_name_each_thing_once() -> None:
    logged = [column.log.key for column in FOR_PEOPLE if column.log is not None]
    headers = [column.cell.header for column in FOR_PEOPLE if column.cell is not None]

    assert logged == [
        "state",
        "outcome",
        "events",
        "actions",
        "deadline",
        "plannedStart",
        "instructions",
        "because",
        "holds",
        "workflows",
        "unknown",
        "stays",
    ]
    assert headers == ["node", "zone", "state", "outcome", "event", "what happens"]
