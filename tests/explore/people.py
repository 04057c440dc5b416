"""What people say about the maintenance of nodes: hold, resume, defer, approve."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from reconciler.features.approvals.instruct import (
    Instructed,
    approved,
    approved_as_recorded,
    deferred,
    held,
    resumed,
    resumed_with_many,
    stopped,
)
from reconciler.model.instructions import ALL, Deferral, PersonHold, Word, pool_scope
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.values import replace
from tests.explore.laws import KEYS
from tests.explore.moves import move

if TYPE_CHECKING:
    from tests.explore.play import Play

_SCOPES = {"all": ALL, "pool": pool_scope("np")}
_HOLDS = ("", "now", "for 30", "now for 30", "for 600")


def _second(play: Play) -> datetime:
    """Return the time of the person's machine, whose clock is right."""
    return play.now.replace(microsecond=0)


def _word(play: Play, minutes: str, scope: str = "") -> Word:
    until = _second(play) + timedelta(minutes=int(minutes)) if minutes else None
    return Word("anna@desk", _second(play), until, "explored", scope)


def _hold(play: Play, value: str, scope: str = "") -> PersonHold:
    stops, _, minutes = value.rpartition("for ") if "for " in value else (value, "", "")
    return PersonHold(_word(play, minutes, scope), stops="now" in stops)


def _write(play: Play, said: Instructed) -> None:
    """Annotate the node, as the command does."""
    if said.write is not None:
        for key, text in said.write.annotations.items():
            play.cluster.annotate(said.write.node, key, text)


@move("people", 3, values=_HOLDS)
def hold(play: Play, name: str, value: str) -> None:
    """Hold a node."""
    node = play.cluster.nodes[name]
    _write(play, held(node, _hold(play, value), DEFAULT_PREFIX, _second(play)))


@move("people", 5)
def resume(play: Play, name: str, _: str) -> None:
    """End the hold and the deferral of a node."""
    _write(play, resumed(play.cluster.nodes[name], DEFAULT_PREFIX, _second(play), "alice@laptop"))


@move(
    "people", 1, values=tuple(f"{scope} {how}".strip() for how in _HOLDS for scope in _SCOPES), on_node=False
)
def hold_many(play: Play, _: str, value: str) -> None:
    """Hold all nodes, or the pool."""
    scope, _, how = value.partition(" ")
    hold = _hold(play, how, _SCOPES[scope])
    others = tuple(one for one in play.cluster.ledger.holds if one.word.scope != hold.word.scope)
    play.cluster.ledger = replace(play.cluster.ledger, holds=(*others, hold))
    for node in list(play.cluster.nodes.values()) if hold.stops else ():
        _write(play, stopped(node, hold, DEFAULT_PREFIX))
    play.wake()


@move("people", 3, values=tuple(_SCOPES), on_node=False)
def resume_many(play: Play, _: str, value: str) -> None:
    """End the hold of all nodes, or of the pool."""
    scope = _SCOPES[value]
    left = tuple(one for one in play.cluster.ledger.holds if one.word.scope != scope)
    play.cluster.ledger = replace(play.cluster.ledger, holds=left)
    for node in list(play.cluster.nodes.values()):
        _write(play, resumed_with_many(node, DEFAULT_PREFIX, _second(play), "alice@laptop", scope))
    play.wake()


@move("people", 2, values=("60", "5", "600"))
def defer(play: Play, name: str, value: str) -> None:
    """Defer the drain of a node."""
    node = play.cluster.nodes[name]
    _write(play, deferred(node, Deferral(_word(play, value)), DEFAULT_PREFIX, _second(play)))


@move("people", 5, values=("", "10", "recorded"))
def approve(play: Play, name: str, value: str) -> None:
    """Approve what waits for it on a node; with a number, for so many minutes.

    `recorded` does so without the settings: what the last pass recorded is approved.
    """
    if value == "recorded":
        node, word = play.cluster.nodes[name], _word(play, "")
        _write(play, approved_as_recorded(node, word, DEFAULT_PREFIX, _second(play)))
        return
    plan = next((one for one in play.looked().nodes if one.node == name), None)
    node = play.cluster.nodes[name]
    _write(play, approved(node, plan, _word(play, value), DEFAULT_PREFIX, _second(play)))


@move("people", 1)
def approval_withdrawn(play: Play, name: str, _: str) -> None:
    """Withdraw the approval of a node."""
    play.cluster.annotate(name, KEYS.approved, None)


@move("people", 1, values=("hold", "defer", "approved"))
def strange_instruction(play: Play, name: str, value: str) -> None:
    """Let another tool write an instruction that can't be read."""
    play.cluster.annotate(name, f"{KEYS.prefix}/{value}", "disk is being copied")
