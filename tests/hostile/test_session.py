"""One fault of a hostile session with a fixed seed; `nox -s hostile` plays all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.session import Notice, Result, Row, Session
from tests.support.controlplane.server import ControlPlane


@pytest.mark.slow
def test_notices_are_served_during_a_fault_and_beside_hostile_objects(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    session = Session(cluster, tmp_path, seed=7, log=tmp_path / "tried.jsonl", slower=60, brief=True)
    result = session.run(0, "evictions")

    assert result.wrong == []
    ((name, row),) = result.rows.items()
    assert name.startswith("evictions: ")
    assert row.notices == 2
    assert row.met
    assert result.tried.total() > 10
    assert (tmp_path / "tried.jsonl").read_text(encoding="utf-8").count("\n") >= result.tried.total()


def test_a_notice_waits_in_part_during_a_fault_and_in_part_after_it() -> None:
    notice = Notice("node", given=10, cordoned=17)

    assert (notice.waited(8, 15), notice.waited(15, 30)) == (5, 2)
    assert Notice("node", given=20, cordoned=22).waited(8, 15) == 0
    assert Notice("node", given=10).waited(8, 15) == 5


def test_the_table_has_a_row_for_each_fault_and_a_sign_for_those_without_a_bound() -> None:
    rows = {"none": Row(readable=True, times=1, notices=6, during=1), "x": Row(readable=False, met=3)}

    _, none, other, *rest = Result(seed=1, rows=rows, wrong=["late"]).summary().splitlines()

    assert none.split() == ["none", "1", "6", "1.0", "s", "0.0", "s"]
    assert other.split() == ["x", "0", "3", "0", "0.0", "s", "*", "0.0", "s"]
    assert rest[-1] == "WRONG: late"
