"""A new node that gets the labels and annotations of another one, as AKS copies them in an image upgrade."""

from __future__ import annotations

from tests.real.passes.scene import PREFIX, Scene


def test_what_belongs_to_another_node_is_ignored_said_and_removed(scene: Scene) -> None:
    old, new = scene.node(0), scene.node(1)
    scene.condition_silent(new)
    scene.api.patch("nodes", old, {"metadata": {"annotations": {f"{PREFIX}/request": '{"kind":"Reboot"}'}}})
    scene.run()
    assert scene.cordoned(old)
    metadata = scene.api.get("nodes", old)["metadata"]
    copied = {key: text for key, text in metadata["annotations"].items() if PREFIX in key}
    labels = {key: text for key, text in metadata["labels"].items() if PREFIX in key}
    assert {f"{PREFIX}/record", f"{PREFIX}/request", f"{PREFIX}/uid"} <= copied.keys()
    assert labels
    scene.api.patch("nodes", new, {"metadata": {"annotations": copied, "labels": labels}})

    report = scene.run()

    assert f"{new} has data of another node" in report.text
    assert scene.is_untouched(new)
    assert not scene.cordoned(new)
    assert scene.cordoned(old)
