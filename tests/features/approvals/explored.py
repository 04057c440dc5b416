"""What people approve in the histories of the exploration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.features.approvals.instruct import approved
from reconciler.model.keys import DEFAULT_PREFIX
from tests.explore.hands import word, write
from tests.explore.history import move
from tests.explore.laws import KEYS

if TYPE_CHECKING:
    from tests.explore.play import Play


@move("people", 5, values=("", "10", "recorded"))
def approve(play: Play, name: str, value: str) -> None:
    """Approve what waits for it on a node; with a number, for so many minutes.

    `recorded` does so without the settings: what the last pass recorded is approved.
    """
    if value == "recorded":
        node = play.cluster.nodes[name]
        write(play, approved(node, None, word(play, ""), DEFAULT_PREFIX, known=False))
        return
    plan = next((one for one in play.looked().nodes if one.node == name), None)
    node = play.cluster.nodes[name]
    write(play, approved(node, plan, word(play, value), DEFAULT_PREFIX))


@move("people", 1)
def approval_withdrawn(play: Play, name: str, _: str) -> None:
    """Withdraw the approval of a node."""
    play.cluster.annotate(name, f"{KEYS.prefix}/approved", None)
