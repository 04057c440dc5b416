"""The line about a pod that was evicted: what it has, and where it goes."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from jobs.runtime.log_line import LARGEST_LINE, to_line
from reconciler.features.pods.lines import PodLines
from reconciler.features.pods.moved import from_fields, moved, to_fields
from reconciler.model.drains import DrainOrder, Eviction, Refused
from reconciler.model.pod import Owner, Pod
from reconciler.model.values import replace
from reconciler.threads import start
from tests.support.builders import NOW, minutes
from tests.support.controlplane.processes import wait_for

POD = Pod("shop", "web-1", "uid-web-1", "a", owner=Owner("ReplicaSet", "web", "apps/v1"))
ORDER = DrainOrder("a", "uid-a", NOW, None, why="Reboot without a date", case=NOW - minutes(60))


def test_a_line_has_what_the_owner_of_a_pod_asks_for() -> None:
    eviction = Eviction(POD, refused=(Refused("PDB shop/web", 3),))
    fields = to_fields(moved(ORDER, eviction, NOW))

    assert fields == {
        "at": "2026-11-21T12:00:00Z",
        "pod": "shop/web-1",
        "uid": "uid-web-1",
        "node": "a",
        "nodeUid": "uid-a",
        "owner": "ReplicaSet/web",
        "case": "2026-11-21T11:00:00Z",
        "why": "Reboot without a date",
        "deleted": False,
        "refused": [{"by": "PDB shop/web", "times": 3}],
    }


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_line_is_read_again_as_it_was_written(deleted: bool, by_hand: bool) -> None:
    order = replace(ORDER, case=None) if by_hand else ORDER
    pod = moved(order, Eviction(replace(POD, owner=None), deleted), NOW)

    assert from_fields(json.loads(to_line(to_fields(pod)))) == pod


def test_a_file_is_read_as_it_comes_and_is_never_whole_in_memory(tmp_path: Path) -> None:
    pipe = tmp_path / "history.jsonl"
    os.mkfifo(pipe)
    lines = PodLines(NOW, None)
    reading = start("reads the lines", partial(lines.read, pipe))
    with pipe.open("w", encoding="utf-8") as file:
        file.write('{"event": "evicted"}\n')
        file.flush()
        wait_for("the first line", lambda: lines.broken == 1)
    reading.join(20)

    assert lines.pods == ()


def test_what_tenants_write_makes_no_line_too_long() -> None:
    evil = "=\n\x1b[31m" * 100_000
    pod = replace(POD, owner=Owner(evil, evil))
    line = to_line(to_fields(moved(ORDER, Eviction(pod, refused=(Refused(evil),)), NOW)))

    assert len(line.encode()) <= LARGEST_LINE
    assert "\n" not in line
    assert from_fields(json.loads(line)).pod == "shop/web-1"
