"""What keeps a budget from an eviction is named with the pod that waits for it, and read only then."""

from __future__ import annotations

from reconciler.model.drains import Blocker, DrainProgress, Phase
from reconciler.model.errors import Unreachable
from reconciler.model.pod import PodDisruptionBudget
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.passes.causes import with_causes
from reconciler.simulation.api import SimulatedApi
from tests.support import builders
from tests.support.worlds import world_of

WAITS = Blocker("shop/web-1", "waits for PDB shop/web", "shop/web")
DENIED = Blocker("shop/web-2", "denied by webhook x: no")


def drain(*blockers: Blocker) -> dict[str, DrainProgress]:
    return {"a": DrainProgress("a", "uid-a", Phase.RUNNING, blockers=blockers)}


def api() -> SimulatedApi:
    waiting = replace(builders.pod("web-3", ""), phase="Pending", unplaced="0/3 nodes are available")
    elsewhere = replace(waiting, namespace="other", uid="other")
    world = world_of([builders.node("a")], [waiting, elsewhere, replace(waiting, uid="new", unplaced="")])
    world.cluster.budgets["shop/web"] = PodDisruptionBudget("shop", "web", EVERYTHING)
    return world.api


def test_the_pod_without_a_node_is_named() -> None:
    first, second = with_causes(drain(WAITS, DENIED), api())["a"].blockers

    assert first.because == (
        "waits for PDB shop/web; shop/web-3, which it counts, has no node: 0/3 nodes are available"
    )
    assert second == DENIED


def test_nothing_is_read_while_no_budget_blocks_and_what_cannot_be_read_is_not_named() -> None:
    class Silent(SimulatedApi):
        def unplaced(self) -> tuple[()]:
            raise Unreachable("no answer")

    silent = Silent(api().cluster)

    assert with_causes(drain(WAITS), silent) == drain(WAITS)
    assert with_causes(drain(DENIED), silent) == drain(DENIED)
