"""What people do to the workflows of nodes: labels that ask for them, select them, or break their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.explore.laws import KEYS
from tests.explore.moves import move

if TYPE_CHECKING:
    from tests.explore.play import Play


@move("workflow", 7, values=("one", "two"))
def work(play: Play, name: str, value: str) -> None:
    """Ask for the work of a profile."""
    play.cluster.label(name, value, "true")


@move("workflow", 6, values=("one", "two"))
def work_done(play: Play, name: str, value: str) -> None:
    """Ask for the work of a profile no longer."""
    play.cluster.label(name, value, None)


@move("workflow", 4, values=("first--second", "first", "second", "second--first", "", "other--first"))
def workflow_label(play: Play, name: str, value: str) -> None:
    """Select the profiles of a node."""
    play.cluster.label(name, KEYS.workflows, value or None)


@move("workflow", 1, values=("", "{", "[]", '{"Profiles":{"first":{"Current":"strange"}}}'))
def workflow_data(play: Play, name: str, value: str) -> None:
    """Remove the data of the workflows, or break them."""
    if value or KEYS.workflow_data in play.cluster.nodes[name].annotations:
        play.laws.shared.ends(play.cluster.nodes[name])
        play.cluster.annotate(name, KEYS.workflow_data, value or None)


@move("workflow", 1, values=("", "in-maintenance", "nonsense"))
def workflow_state_label(play: Play, name: str, value: str) -> None:
    """Change the label that shows the state of the workflows."""
    play.cluster.label(name, KEYS.workflow_state, value or None)
