"""`reconciler report -o html` in mode Observe: what the cluster keeps stands first on the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.features.observed import NAME
from reconciler.features.observed.cases import OBSERVED_CASES, Kept, Stretch
from reconciler.features.observed.summary import TITLE
from reconciler.kubernetes.kept_lines import KeptLines, packed
from tests.features.observed.test_summary import DAY, case
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.builders import NOW
from tests.support.stub import Answer, Asked, json_answer, status

KEPT: KeptLines[Kept] = KeptLines(NOW - DAY, (case("a"), Stretch(NOW - DAY)))


class Cluster(StubCluster):
    """A cluster that gives this answer for what is kept, and counts how often it is asked for it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, node("n"))
        self.folder, self.asked = folder, 0
        self.kept = json_answer({"metadata": {"name": NAME}, "data": packed(OBSERVED_CASES, KEPT)})

    def instead(self, asked: Asked) -> Answer | None:
        if not asked.path.endswith(f"/configmaps/{NAME}"):
            return None
        self.asked += 1
        return self.kept

    def page(self, capsys: pytest.CaptureFixture[str], mode: str = "Observe") -> str:
        """The page of a report with settings of this mode."""
        config = self.folder / "maintenance.yaml"
        config.write_text(f"mode: {mode}\n", encoding="utf-8")
        assert self.run("report", "-o", "html", "--config", str(config)) == 0
        return capsys.readouterr().out


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


def test_the_page_begins_with_the_sum_and_the_next_step(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    page = cluster.page(capsys)

    assert TITLE in page
    assert "1 node was announced; 1 would have been drained in time" in page
    assert "Let a person say yes to each drain at first" in page
    assert page.index(TITLE) < page.index("Who must do something?")
    assert cluster.asked == 1


def test_who_may_not_read_it_is_told_so(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.kept = status(403, "Forbidden", f'configmaps "{NAME}" is forbidden')
    page = cluster.page(capsys)

    assert "be read: needs get configmaps in node-maintenance" in page
    assert "internal error" not in page


def test_a_page_has_none_of_it_where_nothing_is_kept_and_in_another_mode(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert TITLE not in cluster.page(capsys, "Enforce")
    assert cluster.asked == 0
    cluster.kept = status(404, "NotFound", "nothing is here")
    assert TITLE not in cluster.page(capsys)
