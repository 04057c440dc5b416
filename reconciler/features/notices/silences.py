"""Silences in Alertmanager: which there should be after a pass, and what to change for that.

A silence belongs to one node. It ends by itself unless it is extended, so none stays behind for long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from reconciler.features.notices.facts import kind_of
from reconciler.features.notices.settings import Alertmanager, Matcher, Notify
from reconciler.features.notices.transports.sending import Http, NotSent, Post, resolved
from reconciler.model import limits
from reconciler.model.holds import INTERNAL, RECORD_READABLE
from reconciler.model.moments import from_text, shifted, to_text
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.record import Cordon, State
from reconciler.report import safe

AUTHOR = "node-maintenance-reconciler"
MOST = 1000
"""Silences of one entry."""

_UID = re.compile(r"\(uid ([0-9A-Za-z-]{1,64})\)")
_UNKNOWN = frozenset({INTERNAL.code, RECORD_READABLE.code})
_EXTENDED_AFTER = 3
"""A silence is extended when this part of its time is over."""


class Silence(Struct, frozen=True):
    """A silence that exists or shall exist: for the node with this UID, until `ends` (UTC)."""

    uid: str
    ends: datetime
    matchers: tuple[Matcher, ...]
    comment: str
    id: str = ""
    starts: datetime | None = None


class WantedSilences(Struct, frozen=True):
    """The nodes that one entry silences: UID, name and kind of the event.

    `unknown` are the UIDs of nodes that can't be judged now, whose silences stay. `ours` are the UIDs of all
    nodes whose silences are ours to end.
    """

    nodes: tuple[tuple[str, str, str], ...] = ()
    unknown: frozenset[str] = frozenset()
    ours: frozenset[str] = frozenset()

    def differs(self, other: WantedSilences | None) -> bool:
        """Whether other silences are wanted than before."""
        return other is None or (self.nodes, self.unknown) != (other.nodes, other.unknown)


def wanted_silences(
    entry: Notify, plan: Plan, outcomes: Sequence[Outcome], known: Iterable[str]
) -> WantedSilences:
    """Return what an entry silences after a pass: nodes that are in maintenance with a cordon.

    `known` are the UIDs of nodes that were in a case before the pass; a node may be deleted by now.
    """
    failed = {outcome.node for outcome in outcomes if outcome.notable}
    nodes, unknown = [], set()
    for node in plan.nodes:
        if not node.uid or not entry.node_selector.matches(plan.labels.get(node.node, {})):
            continue
        record = node.record if node.ended is None else None
        if node.node in failed or any(hold.code in _UNKNOWN for hold in node.holds):
            unknown.add(node.uid)
        elif (
            record is not None
            and record.state is State.IN_MAINTENANCE
            and record.cordon is not Cordon.NONE
            and (not entry.kinds or kind_of(node) in entry.kinds)
        ):
            nodes.append((node.uid, node.node, kind_of(node)))
    return WantedSilences(tuple(sorted(nodes)[:MOST]), frozenset(unknown), plan.uids | frozenset(known))


def changes(
    entry: Notify, wanted: WantedSilences, found: Sequence[Silence], now: datetime
) -> tuple[tuple[Silence, ...], tuple[str, ...]]:
    """Return the silences to write, and the ids of those to end; `now` is aware.

    `found` are the active silences of the entry. Of several for one node, the one that lasts longest stays.
    """
    settings = entry.alertmanager
    if settings is None:
        return (), ()
    ends = shifted(now.replace(microsecond=0), settings.duration)
    late = shifted(now, settings.duration - settings.duration / _EXTENDED_AFTER)
    by_uid: dict[str, Silence] = {}
    doubled: list[str] = []
    for one in sorted(found, key=lambda one: one.ends):
        doubled += [by_uid[one.uid].id] if one.uid in by_uid else []
        by_uid[one.uid] = one
    write = []
    for uid, node, kind in wanted.nodes:
        matchers = matchers_of(settings, node)
        before = by_uid.get(uid)
        if before is None or before.matchers != matchers:
            write.append(Silence(uid, ends, matchers, comment_of(uid, node, kind)))
        elif before.ends < late:
            write.append(Silence(uid, ends, matchers, before.comment, id=before.id, starts=before.starts))
    matching = {uid: matchers_of(settings, node) for uid, node, _ in wanted.nodes}
    ended = [
        one.id
        for uid, one in by_uid.items()
        if uid in wanted.ours and uid not in wanted.unknown and matching.get(uid) != one.matchers
    ]
    return tuple(write), tuple(dict.fromkeys((*doubled, *ended)))


def author_of(entry: Notify) -> str:
    """Return who creates the silences of an entry, in Alertmanager's `createdBy`."""
    return f"{AUTHOR}/{entry.name}"


def comment_of(uid: str, node: str, kind: str) -> str:
    """Return the comment by which the silence of a node is found again."""
    why = f"maintenance of the node ({kind})" if kind else "maintenance of the node"
    return safe.line(limits.text(f"node {node} (uid {uid}): {why}", 500))


def uid_in(comment: str) -> str:
    """Return the UID of the node in a comment, empty if there is none."""
    found = _UID.search(comment)
    return found[1] if found else ""


def matchers_of(settings: Alertmanager, node: str) -> tuple[Matcher, ...]:
    """Return the matchers for a node."""
    return tuple(matcher.of(node) for matcher in settings.matchers)


def look_again(settings: Alertmanager) -> timedelta:
    """Return how often to look at the silences while nothing changes."""
    return settings.duration / (2 * _EXTENDED_AFTER)


LARGEST = 16 << 20
"""Bytes of a list of silences; Alertmanager keeps those that have ended for five days."""

_ACTIVE = ("active", "pending")


class Silencer:
    """Keeps the silences of one entry as they should be, by Alertmanager's API v2."""

    def __init__(self, entry: Notify, http: Http) -> None:
        """Use the section `alertmanager` of this entry; ValueError if it has none."""
        if entry.alertmanager is None:
            raise ValueError(f"notify {entry.name}: no Alertmanager")
        self._entry, self._settings, self._http = entry, entry.alertmanager, http

    def keep(self, wanted: WantedSilences, now: datetime) -> None:
        """Create, extend and end silences; `now` is aware. Each request is bounded. Raises NotSent.

        What an earlier call has done is found in Alertmanager, so a call that was cut short is repeated.
        """
        author = author_of(self._entry)
        answer = self._request("GET", "silences").document()
        if not isinstance(answer, list):
            raise NotSent("the list of silences is not a list")
        known = [silence for item in answer if (silence := _silence(item, author)) is not None][: 2 * MOST]
        write, end = changes(self._entry, wanted, known, now)
        for silence in write:
            body: dict[str, Any] = {
                "matchers": [
                    {
                        "name": matcher.name,
                        "value": matcher.value,
                        "isRegex": matcher.is_regex,
                        "isEqual": matcher.is_equal,
                    }
                    for matcher in silence.matchers
                ],
                "startsAt": to_text(silence.starts or now),
                "endsAt": to_text(silence.ends),
                "createdBy": author,
                "comment": silence.comment,
            }
            self._request("POST", "silences", {**body, "id": silence.id} if silence.id else body)
        # After the writes: a silence with other matchers replaces one that ends.
        for silence_id in end:
            self._request("DELETE", f"silence/{quote(silence_id, safe='')}")

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        settings: Alertmanager = self._settings
        url = f"{resolved(settings.url).rstrip('/')}/api/v2/{path}"
        headers = {name: resolved(value) for name, value in settings.headers.items()}
        return self._http.send(Post(url, body, headers, method=method, largest=LARGEST))


def _silence(item: Any, author: str) -> Silence | None:
    """Return a silence of this author that has not ended, None for any other, or one that can't be read."""
    try:
        if item["createdBy"] != author or item["status"]["state"] not in _ACTIVE:
            return None
        uid = uid_in(str(item["comment"]))
        matchers = tuple(
            Matcher(
                str(matcher["name"]),
                str(matcher["value"]),
                is_regex=bool(matcher["isRegex"]),
                is_equal=bool(matcher.get("isEqual", True)),
            )
            for matcher in item["matchers"]
        )
        ends, starts = from_text(item["endsAt"]), from_text(item["startsAt"])
        return Silence(uid, ends, matchers, str(item["comment"]), str(item["id"]), starts) if uid else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
