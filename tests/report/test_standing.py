"""What a node is, in one word: the same one in each output."""

from __future__ import annotations

import json

import pytest

from reconciler.model.node import Node
from reconciler.report.kinds import hold_kinds
from reconciler.report.standing import Standing, ends_by_itself, kind_of_hold, standing
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import PREFIX, REQUEST
from tests.support.worlds import world_of

SOON = {REQUEST: '{"kind":"Reboot","notBefore":"2026-11-21T13:00:00Z"}'}
HOLD = {f"{PREFIX}/hold": json.dumps({"by": "ada", "at": "2026-11-21T09:00:00Z"})}
LATER = json.dumps({"by": "ada", "at": "2026-11-21T09:00:00Z", "until": "2026-11-21T12:30:00Z"})


@pytest.mark.parametrize("code", hold_kinds())
def test_what_ends_by_itself_waits_and_what_a_person_asked_for_is_held(code: str) -> None:
    kind = kind_of_hold(code)

    assert kind in (Standing.WAITS, Standing.HELD, Standing.BLOCKED)
    assert (kind is Standing.HELD) == hold_kinds()[code].by_person
    if ends_by_itself(code) and kind is not Standing.HELD:
        assert kind is Standing.WAITS


@pytest.mark.parametrize(
    ("node", "settings", "expected"),
    [
        (builders.node(), "", Standing.QUIET),
        (builders.node(annotations={REQUEST: '{"kind":"Freeze"}'}), "", Standing.NO_DRAIN),
        (builders.node(annotations=SOON), "", Standing.PLANNED),
        (builders.node(annotations=SOON), "mode: Observe", Standing.UNGUARDED),
        (builders.node(annotations=SOON), "mode: Finish", Standing.WILL_BE_MISSED),
        (builders.node(annotations=HOLD), "", Standing.HELD),
        (builders.node(annotations={**SOON, f"{PREFIX}/hold": LATER}), "", Standing.HELD),
        (builders.node(annotations={**SOON, f"{PREFIX}/defer": LATER}), "", Standing.PLANNED),
        (builders.node(annotations={REQUEST: '{"kind":"Rebooot"}'}), "", Standing.BLOCKED),
        (builders.node(annotations=SOON, labels={f"{PREFIX}/ignore": "true"}), "", Standing.UNGUARDED),
    ],
)
def test_a_node_has_one_word(node: Node, settings: str, expected: Standing) -> None:
    assert standing(Explained(world_of([node]), settings).node().plan) is expected
