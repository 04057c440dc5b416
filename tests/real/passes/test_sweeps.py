"""Law 28 as processes: a row of short sweeps comes to the same as one long process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.real.passes.processes import ENFORCE, Done, Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.webhooks import EVICTIONS, in_force, rehearsed
from tests.support.stub import Answer, Asked, Stub, json_answer

Object = dict[str, Any]


def sweep(programs: Programs) -> Done:
    """A sweep that does not wait for the end of its drains."""
    done = programs.sweep("--for", "1s")
    assert done.code == 0, done.err
    return done


def holds(done: Done, node: str, check: str) -> list[str]:
    return [one["reason"] for one in done.node(node)["holds"] if one["check"] == check]


def test_what_a_webhook_of_a_hook_agrees_to_counts_in_a_row_of_sweeps(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node(0)
    scene.workload("web", node)
    scene.annotate(node, "request", '{"kind": "Reboot"}')
    asked: list[object] = []

    def agree(request: Asked) -> Answer:
        asked.append(request.body)
        return json_answer({}, 202 if len(asked) == 1 else 200)

    with closing(Stub(agree)) as service:
        hook = f"{{name: leave, webhook: {{url: '{service.url}/leave'}}}}"
        programs.configure(f"{ENFORCE}hooks: {{preDrain: [{hook}]}}\n")
        first = sweep(programs)
        assert "answered 202: not yet" in holds(first, node, "preDrainHooksDone")[0]
        assert scene.pods_on(node) == ["web"]
        sweep(programs)
        wait_for("an evicted pod", lambda: scene.pods_on(node) == [])
        sweep(programs)

    assert len(asked) == 2
    (hook_record,) = scene.record(node)["profiles"]["default"]["hooks"]  # type: ignore[index]
    assert hook_record["end"] == "done"


def test_a_webhook_that_wants_a_pause_is_not_asked_by_the_next_sweep(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node(0)
    scene.annotate(node, "request", '{"kind": "Reboot"}')
    asked: list[object] = []

    def busy(request: Asked) -> Answer:
        asked.append(request.body)
        return Answer(status=503, headers={"Retry-After": "300"})

    with closing(Stub(busy)) as service:
        hook = f"{{name: leave, webhook: {{url: '{service.url}/leave'}}}}"
        programs.configure(f"{ENFORCE}hooks: {{preDrain: [{hook}]}}\n")
        sweep(programs)
        second = sweep(programs)

    assert len(asked) == 1
    assert "asked again at" in holds(second, node, "preDrainHooksDone")[0]


def test_since_when_an_eviction_is_denied_counts_across_sweeps(scene: Scene, programs: Programs) -> None:
    programs.configure(f"{ENFORCE}drain: {{webhooksMayDeny: 15s}}\n")
    node = scene.node(0)
    scene.workload("web", node)
    scene.annotate(node, "request", '{"kind": "Reboot"}')

    with _evictions_denied(scene):
        moments = set()

        def said() -> list[str]:
            return [text for text in holds(sweep(programs), node, "drain") if "counts as blocked" in text]

        for _ in range(2):
            (text,) = wait_for("a denial", said)
            moments |= set(re.findall(r"counts as blocked from (\S+) on", text))
        assert len(moments) == 1


def test_an_absolute_freeze_holds_although_its_file_is_half_written(scene: Scene, programs: Programs) -> None:
    file = programs.folder / "freeze.yaml"
    programs.configure(f"{ENFORCE}calendars: [{{name: sale, file: {file}, absolute: true}}]\n")
    node = scene.node(0)
    scene.workload("web", node)
    soon = f"{datetime.now(UTC) + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    scene.annotate(node, "request", f'{{"kind": "Reboot", "notBefore": "{soon}"}}')

    file.write_text("- {start: 2020-01-01, end: 2099-01-01, reason: sale}\n", encoding="utf-8")
    assert holds(sweep(programs), node, "windowOpen")
    file.write_text("- {start: 2020-01-01, en", encoding="utf-8")
    second = sweep(programs)

    assert "sale" in holds(second, node, "windowOpen")[0]
    assert any("what it said before counts until" in note for note in second.document["notes"])
    assert scene.pods_on(node) == ["web"]


@contextmanager
def _evictions_denied(scene: Scene) -> Iterator[None]:
    name = {"name": "no-evictions"}
    validation = {"expression": "false", "message": "evictions are frozen"}
    rules = {"resourceRules": [EVICTIONS]}
    policy = {"failurePolicy": "Fail", "matchConstraints": rules, "validations": [validation]}
    binding = {"policyName": "no-evictions", "validationActions": ["Deny"]}
    with in_force(
        scene.api,
        {"metadata": name, "spec": policy},
        {"metadata": name, "spec": binding},
        lambda: "frozen" in rehearsed(scene.api, "web"),
    ):
        yield


def test_a_volume_that_is_still_attached_is_awaited_by_the_next_sweep_too(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(ENFORCE)
    node = scene.node(0)
    spec = {"attacher": "disk.csi.azure.com", "nodeName": node, "source": {"persistentVolumeName": "pv-left"}}
    scene.api.create("volumeattachments", {"metadata": {"name": "left"}, "spec": spec})
    scene.workload("web", node)
    scene.annotate(node, "request", '{"kind": "Reboot"}')

    def emptied() -> bool:
        sweep(programs)
        return scene.pods_on(node) == []

    wait_for("a node without pods", emptied)
    for _ in range(2):
        sweep(programs)
        assert "done" not in scene.record(node)["drain"]  # type: ignore[index]

    scene.api.delete("volumeattachments", "left", grace=0)

    def done() -> bool:
        sweep(programs)
        return "done" in scene.record(node)["drain"]  # type: ignore[index]

    wait_for("the end of the drain", done)
