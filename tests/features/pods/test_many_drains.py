"""Many drains at once write their lines without a request more."""

from __future__ import annotations

import pytest

from reconciler.features.pods import NAME
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.kubernetes.kept_lines import unpacked
from tests.features.pods.many_drains import Lines, evictions, leading
from tests.features.pods.maps import Maps
from tests.support.stub import StubMaker

DRAINS, PODS = 500, 2


@pytest.mark.parametrize(
    ("settings", "requests"),
    [("pods: {keep: 0s}", []), ("", ["GET", "POST"]), ("pods: {publish: true}", ["GET", "POST"])],
    ids=["off", "kept", "published"],
)
def test_500_drains_write_their_lines_without_a_request_and_all_are_kept_with_one_write(
    settings: str, requests: list[str], stub: StubMaker
) -> None:
    maps, lines = Maps(stub), Lines()
    feature = leading(maps, settings, lines)
    feature.drains()

    for order, eviction in evictions(DRAINS, PODS):
        feature.evicted(order, eviction)
    meanwhile = list(maps.stub.asked)
    feature.close()

    assert len({(line["pod"], line["node"]) for line in lines.all}) == DRAINS * PODS
    assert meanwhile == []
    assert [asked.method for asked in maps.stub.asked] == requests
    if requests:
        assert len(unpacked(MOVED_PODS, maps.data("node-maintenance", NAME)).lines) == DRAINS * PODS
