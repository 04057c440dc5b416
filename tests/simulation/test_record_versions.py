"""An upgrade in mid-drain, and the way back: version 1 of the record is read, version 2 written."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from reconciler.model.keys import OwnKeys
from reconciler.model.record import Record, State, record_of, to_annotation
from reconciler.passes.release import release
from reconciler.run import run_pass
from reconciler.simulation.world import World
from tests.simulation.building import PREFIX, name
from tests.simulation.test_passes import SETTINGS, play, with_reboot


def as_version_1(record: Record) -> str:
    """The text that a program of version 1 would have written of the same case of its one profile."""
    document = json.loads(to_annotation(record))
    cordon, drain = document.pop("cordon", None), document.pop("drain", None)
    mine = document["profiles"]["default"]
    case = {key: mine.pop(key) for key in tuple(mine) if key not in ("state", "since")}
    dismissed = case.pop("dismissed", None)
    case["cordon"] = cordon["whose"] if cordon else "none"
    if drain:
        case["drain"] = {key: drain[key] for key in drain if key != "claims"}
    document |= {"version": 1, "case": case}
    if dismissed:
        document["dismissed"] = dismissed
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


RECORD = OwnKeys(PREFIX).record
STATE = OwnKeys(PREFIX).state


def half_drained() -> World:
    """A world in which the program of version 1 was ended while it drained a node."""
    there = with_reboot()
    run_pass(there.outside, SETTINGS, there.now)
    there.advance(timedelta(seconds=2))
    node = there.cluster.nodes[name(0)]
    record = record_of(node, PREFIX)
    assert isinstance(record, Record)
    assert record.being_drained
    assert there.cluster.pods_on(name(0))
    there.cluster.annotate(name(0), RECORD, as_version_1(record))
    there.restart()
    return there


def test_the_next_program_finishes_the_drain_and_uncordons() -> None:
    there = half_drained()
    began = json.loads(there.cluster.nodes[name(0)].annotations[RECORD])["case"]["drain"]["since"]

    play(there, 10)
    node = there.cluster.nodes[name(0)]
    document = json.loads(node.annotations[RECORD])

    assert not there.cluster.pods_on(name(0))
    assert node.unschedulable
    assert document["version"] == 2
    assert document["drain"]["since"] == began
    assert document["drain"]["claims"] == document["cordon"]["claims"] == ["profile:default"]

    play(there, 40)
    node = there.cluster.nodes[name(0)]

    assert (node.unschedulable, dict(node.annotations), STATE in node.labels) == (False, {}, False)


def test_a_pass_that_only_reads_version_1_writes_nothing() -> None:
    there = with_reboot()
    play(there, 12)
    node = there.cluster.nodes[name(0)]
    record = record_of(node, PREFIX)
    assert isinstance(record, Record)
    old = as_version_1(record)
    there.cluster.annotate(name(0), RECORD, old)

    play(there, 2)

    assert there.cluster.nodes[name(0)].annotations[RECORD] == old


@pytest.mark.parametrize("version", [1, 2])
def test_release_undoes_either_version_so_that_any_program_can_follow(version: int) -> None:
    there = half_drained()
    if version == 2:
        record = record_of(there.cluster.nodes[name(0)], PREFIX)
        assert isinstance(record, Record)
        there.cluster.annotate(name(0), RECORD, to_annotation(record))

    write = release(there.cluster.nodes[name(0)], PREFIX, reset=False)
    assert write is not None
    there.api.patch_node(write)
    node = there.cluster.nodes[name(0)]

    assert (node.unschedulable, dict(node.annotations)) == (False, {})
    assert State.IN_MAINTENANCE not in node.labels.values()
