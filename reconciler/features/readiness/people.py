"""Which nodes people keep from a drain: by a hold, a deferral, or an approval that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from reconciler.model.event import Kind
from reconciler.model.instructions import Instructions, PersonHold, instructions_of, resume_command
from reconciler.model.node import Node
from reconciler.model.readiness import KeptByPeople, PeopleCode
from reconciler.settings.policies import ApprovalMissing
from reconciler.settings.schema import Settings

_Why = tuple[PeopleCode, str, str, datetime | None]


def kept_by_people(
    nodes: Iterable[Node], holds: Iterable[PersonHold], settings: Settings, kind: Kind, now: datetime
) -> tuple[KeptByPeople, ...]:
    """Return what keeps these nodes from a drain for an event of this kind; nodes with the same reason once.

    `holds` are those of the ledger, `now` is aware. Raises nothing for any text of an annotation.
    """
    fleet = tuple(holds)
    grouped: dict[_Why, list[str]] = {}
    for node in nodes:
        said = instructions_of(node, settings.keys.prefix, now, fleet)
        for why in _reasons(node, said, settings, kind):
            grouped.setdefault(why, []).append(node.name)
    order = list(PeopleCode)
    return tuple(
        KeptByPeople(code, because, remedy, until, tuple(sorted(names)))
        for (code, because, remedy, until), names in sorted(
            grouped.items(), key=lambda one: (order.index(one[0][0]), -len(one[1]), one[1])
        )
    )


def _reasons(node: Node, said: Instructions, settings: Settings, kind: Kind) -> Iterator[_Why]:
    if said.hold is not None:
        word = said.hold.word
        yield PeopleCode.HOLD, f"held {word}", f"{resume_command(word.scope, 'NODE')} ends it.", word.until
    if said.deferral is not None:
        word = said.deferral.word
        remedy = f"{resume_command(word.scope, 'NODE')} ends it, and the deadline of an event does."
        yield PeopleCode.DEFERRAL, f"deferred {word}", remedy, word.until
    policy = settings.policy(kind, "", node.labels)
    if policy is None or not policy.approval or _is_approved(said, kind):
        return
    because = f"a drain for a {kind} waits for a person to approve it"
    if policy.approval_missing is ApprovalMissing.PROCEED:
        because = f"{because}, until its deadline"
    yield PeopleCode.APPROVAL, because, "reconciler approve NODE approves it once it is announced.", None


def _is_approved(said: Instructions, kind: Kind) -> bool:
    """Whether the node has an approval for an event that is at least as disruptive."""
    found = said.approval
    return found is not None and any(known.kind.severity >= kind.severity for known in found.events)
