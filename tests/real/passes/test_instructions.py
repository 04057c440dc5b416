"""What a person says with `approve`, `hold` and `resume`, and what passes and a drain that runs do then."""

from __future__ import annotations

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene

pytestmark = pytest.mark.slow


def test_a_hold_of_all_nodes_is_about_a_node_that_joins_later_and_outlives_what_passes_write(
    scene: Scene, programs: Programs
) -> None:
    scene.set("budget: {spacing: 1m}")
    first = scene.node(0)
    refused = programs.run("hold", "--all")
    assert (refused.code, "there is no namespace node-maintenance" in refused.err) == (1, True)
    scene.api.create_namespace("node-maintenance")
    done = programs.run("hold", "--pool", "np", "--reason", "incident 311")
    assert done.code == 0, done.err
    assert done.out.splitlines()[2].startswith("pool np is held by ")
    done = programs.run("hold", "--all")
    assert done.code == 0, done.err
    later = scene.node(1)
    scene.condition_tells(later)

    assert "notHeld" in scene.run().holds(later)
    assert programs.run("resume", "--all").code == 0
    assert "pool np is held by" in scene.run().holds(later)["notHeld"]
    assert programs.run("resume", "--pool", "np").code == 0
    scene.run()
    assert scene.cordoned(later)

    # The pass has written the last start into the same ConfigMap.
    assert programs.run("hold", "--all").code == 0
    scene.condition_tells(first)
    assert {"notHeld", "spacingKept"} <= set(scene.run().holds(first))
