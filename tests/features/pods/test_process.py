"""What `serve` does with ConfigMaps in namespaces, by its settings."""

from __future__ import annotations

import pytest

from jobs.runtime.line_keeper import Keeper
from reconciler.features.pods import NAME, PUBLISHED
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.features.pods.publisher import OF
from reconciler.kubernetes.kept_lines import KeptLines, packed, unpacked
from reconciler.model.plan import Plan
from tests.features.pods.many_drains import Lines, Silent, evictions, leading
from tests.features.pods.maps import Maps
from tests.support.builders import NOW
from tests.support.controlplane.processes import wait_for
from tests.support.stub import StubMaker

OWN = "node-maintenance"


@pytest.mark.parametrize(
    ("settings", "stays"),
    [("mode: Enforce", False), ("mode: Observe", True), ("mode: Observe\npods: {publish: true}", True)],
    ids=["off", "off in Observe", "on in Observe"],
)
def test_what_is_published_is_deleted_once_it_is_off_but_not_in_mode_observe(
    settings: str, stays: bool, stub: StubMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Keeper.__init__.__kwdefaults__ or {}, "every", 0.01)
    maps = Maps(stub)
    metadata = {"name": NAME, "uid": "u", "resourceVersion": "1"}
    maps.all[OWN, NAME] = {"metadata": metadata, "data": packed(MOVED_PODS, KeptLines(NOW, (), "shop"))}
    maps.all["shop", PUBLISHED] = {"metadata": {"name": PUBLISHED, "uid": "u", "labels": {OF: OWN}}}
    feature = leading(maps, settings, Lines())
    feature.drains()

    # After the first pod, what is recorded is known; after each later one, namespaces have been looked at.
    for count, (order, eviction) in enumerate(evictions(4, 1), start=1):
        feature.evicted(order, eviction)

        def kept(count: int = count) -> bool:
            return len(unpacked(MOVED_PODS, maps.data(OWN, NAME)).lines) == count

        wait_for("the pod", kept, every=0.005)
        feature.after(Plan(NOW, ""), (), Silent())
    feature.close()

    assert (("shop", PUBLISHED) in maps.all) is stays
