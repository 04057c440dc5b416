"""The page of `serve`, under the rights that its manifests give."""

from __future__ import annotations

import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.features.page.reading import parsed, section
from tests.real.manifests.applying import applied
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_drains import cover
from tests.real.passes.test_rights import account
from tests.support.controlplane.waiting import wait_for
from tests.support.ended import ended, line

pytestmark = pytest.mark.slow


def test_the_page_shows_readiness_and_the_day_before_its_process(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    programs.configure("mode: Observe\n")
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    history = tmp_path / "history.jsonl"
    earlier = ended("gone-before", at=datetime.now(UTC) - timedelta(hours=5))
    history.write_text(f"{line(earlier)}\n", encoding="utf-8")
    asked = datetime.now(UTC)

    with applied(scene.controlplane, "base"):
        arguments = ("--every", "1h", "--listen", "127.0.0.1:0", "--history", str(history))
        process = programs.start("serve", *arguments, kubeconfig=account(scene.controlplane))
        (listening,) = process.wait_for("listening")

        def shown(part: str) -> str:
            with urllib.request.urlopen(f"http://{listening['address']}/", timeout=60) as answer:
                html = answer.read().decode()
            return section(parsed(html), part).text if "<html" in html else ""

        wait_for("readiness", lambda: "As of " in shown("readiness"), seconds=60)
        readiness, timeline = shown("readiness"), shown("timeline")
        assert process.terminate().code == 0

    assert "1 of 1 node would not drain" in readiness
    assert "default/web (Deployment) blocks 1 pod" in readiness
    # The only permission that readiness needs beyond those of passes. docs/page.md says how to give it.
    assert readiness.count("could not see") == 1
    assert "could not see: PersistentVolumes (needs list persistentvolumes)" in readiness
    assert "gone-before" in timeline
    volumes = [one for one in scene.asked("list", since=asked) if one.resource == "persistentvolumes"]
    assert len(volumes) == 1, "however often the page is loaded, readiness is read once"
