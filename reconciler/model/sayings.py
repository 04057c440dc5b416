"""What people say and do: words that stand on a node, and the line that is kept of each deed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from reconciler.model import limits
from reconciler.model.content import short_hash
from reconciler.model.instructions import Word
from reconciler.model.values import Name, Written, decoded, encoded

EVERYTHING = "*"
"""All that was said of a node, for `Saying.ends`."""


def mark_of(text: str) -> str:
    """Return the mark of a text that a person has written, which differs from that of another text."""
    return short_hash(text.encode("utf-8", "surrogatepass"))


class Saying(Struct, frozen=True):
    """What a person says of a node, as it stands there.

    `name` tells it from all else that is said of the node, and `mark` from another text of that name. `did`
    is what the person has done, such as `held`, and `over` what is said once it is gone, such as `hold
    ended`; empty for what does not last. `with_case`: it goes with the case, so that its end is the deed of a
    person only while the case goes on. `ends` is the `did` of what it has ended, or EVERYTHING; empty
    for a word that has ended nothing.
    """

    name: str
    did: str
    word: Word
    mark: str
    over: str = ""
    with_case: bool = False
    ends: str = ""


class NodeSayings(Struct, frozen=True):
    """All that people say of a node: `case` is the start of its case (UTC), None without one."""

    node: str
    uid: str
    said: tuple[Saying, ...] = ()
    case: datetime | None = None


class Deed(Struct, frozen=True):
    """What a person did. Moments are UTC.

    `at` is when a pass saw it, `given` the moment that the person's word names, None if it names none. `by`
    is empty if nobody knows who it was. `scope` is that of a word to many nodes, as in `Word`; without it and
    without a node, the deed is about the whole program. `more` counts deeds of the same kind on the same node
    before it that have no line, because there were too many.
    """

    at: datetime
    did: Name
    by: Written[Name] = ""
    verified: Written[bool] = False
    node: Written[Name] = ""
    node_uid: Written[Name] = ""
    case: datetime | None = None
    scope: Written[Name] = ""
    given: datetime | None = None
    until: datetime | None = None
    why: Written[Annotated[str, Meta(max_length=limits.TEXT)]] = ""
    more: Written[Annotated[int, Meta(ge=0, le=limits.COUNT)]] = 0


DEED = "person"
"""The `event` of the line about a deed in a log."""

_WHY = 400
"""Characters of a reason in a line; the annotation may have more."""

_NULL_IF_UNKNOWN = dict.fromkeys(["by", "node", "nodeUid", "case", "scope", "given", "until", "why"])


def deed_of(word: Word, at: datetime, did: str, place: NodeSayings | None = None) -> Deed:
    """Return the line of what a person has said or ended on a node (None: on many), which a pass saw `at`."""
    return Deed(
        at,
        did,
        by=word.by,
        verified=word.verified,
        node=place.node if place is not None else "",
        node_uid=place.uid if place is not None else "",
        case=place.case if place is not None else None,
        scope=word.scope,
        given=word.at,
        until=word.until,
        why=limits.text(limits.whole("; ".join(filter(None, (word.reason, word.problem)))), _WHY),
    )


def to_fields(deed: Deed) -> dict[str, Any]:
    """Return the fields of its line; moments are RFC 3339 in UTC, and what is not known is None."""
    return {**_NULL_IF_UNKNOWN, **{key: value for key, value in encoded(deed).items() if value != ""}}


def from_fields(fields: Mapping[str, Any]) -> Deed:
    """Return what the fields of a line say; others are ignored. Raises ValueError, which names the field."""
    return decoded(Deed, {key: value for key, value in fields.items() if value is not None})
