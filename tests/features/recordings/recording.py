"""Recordings of simulated worlds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from reconciler.features.recordings.case import decision_of, replayed
from reconciler.features.recordings.commands import recorded
from reconciler.features.recordings.file import Recorded, from_file
from reconciler.features.recordings.standins import Hidden
from reconciler.model.errors import Unauthorized
from reconciler.model.ports import CalendarReader, Outside
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.report.explain import explain_node
from reconciler.run import PARTS, examine
from reconciler.settings.load import parse_settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World

ENFORCE = "mode: Enforce\nbudget: {maxUnavailable: 50%}\n"


@dataclass(frozen=True, slots=True)
class Recording:
    """The file of a node, what was replaced, the notes for its sender, and what was really decided."""

    text: str
    hidden: tuple[Hidden, ...]
    notes: list[str]
    decided: dict[str, Any]

    @property
    def read(self) -> Recorded:
        return from_file(self.text.encode())

    @property
    def replayed(self) -> dict[str, Any]:
        """What the program decides from the file alone."""
        what = self.read
        return replayed(what.case, what.answers, what.settings, PARTS, examine).decision


def recording_of(
    world: World,
    name: str,
    policy: str = ENFORCE,
    refused: Collection[str] = (),
    calendars: CalendarReader | None = None,
) -> Recording:
    """The recording of a node, by somebody who only reads, without the reads that are refused."""

    def refuse(call: Call) -> None:
        if call.what in refused:
            raise Unauthorized(f"403 {call.what}", status=403, needs=f"list {call.what}")

    world.api.before_read = refuse
    settings = parse_settings(policy, "maintenance.yaml")
    outside = Outside(**{field: getattr(world.outside, field) for field in Outside.__struct_fields__})
    outside = replace(outside, calendars=calendars)
    found = examine(outside, settings, world.now, with_preview=True, also_pods=True)
    node, now = next(one for one in found.snapshot.nodes if one.name == name), found.plan.now
    explained = explain_node(node, found, assess(found.snapshot, now).of(name), settings, now)
    text, hidden, notes = recorded(name, found, settings, policy)
    return Recording(text, hidden, notes, decision_of(explained))
