"""What counts of the calendars that the settings name: what a pass reads, or what an earlier one has kept."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated

from msgspec import Meta, Struct

from reconciler.features.calendars.settings import NOT_READ
from reconciler.model.content import CalendarPlace, CalendarText, short_hash
from reconciler.model.limits import CALENDAR, CALENDARS, KEPT_CALENDARS
from reconciler.model.moments import to_text
from reconciler.model.snapshot import LedgerPart
from reconciler.model.values import code_of
from reconciler.passes.plugin import CalendarsNow, Feature, Fleet

LAST_CONTENT = timedelta(days=1)
"""How long the last good content of a calendar counts while the newest can't be used."""


class KeptCalendar(Struct, frozen=True):
    """The last content of a calendar that could be used, for a process that can't read the calendar.

    `place` is a hash of where it was read and how. `content` is compressed. `unread_since` is the first pass
    that could not use the newest content (UTC).
    """

    name: str
    place: str
    content: Annotated[str, Meta(max_length=KEPT_CALENDARS)]
    unread_since: datetime | None = None

    @property
    def text(self) -> str:
        """The content; ValueError if it can't be read."""
        return _unpacked(self.content)


def kept_calendars(
    places: Iterable[CalendarPlace], texts: Mapping[str, CalendarText]
) -> tuple[KeptCalendar, ...]:
    """Return what is kept of the calendars at these places, by name, as far as there is room for it."""
    found, room = [], KEPT_CALENDARS
    for place in sorted(places, key=lambda place: place.name):
        read = texts.get(place.name, CalendarText())
        if read.unread or not read.text:
            continue
        kept = KeptCalendar(place.name, _place_hash(place), _packed(read.text), read.unread_since)
        if len(kept.content) <= room:
            found.append(kept)
            room -= len(kept.content)
    return tuple(found)


def _place_hash(place: CalendarPlace) -> str:
    """Return a text that differs for places of which one content has different times."""
    read = (str(place), str(place.zone), place.zone_given, place.aks)
    return short_hash(repr(read).encode("utf-8", "surrogatepass"))


# Each pass asks for the same few texts again.
@lru_cache(maxsize=64)
def _packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 9)).decode()


@lru_cache(maxsize=64)
def _unpacked(content: str) -> str:
    try:
        stream = zlib.decompressobj()
        # A character has four bytes at most.
        found = stream.decompress(base64.b64decode(content, validate=True), 4 * CALENDAR)
        if not stream.eof:
            raise ValueError("it is cut off, or too large")
        return found.decode("utf-8", "surrogatepass")
    except (ValueError, zlib.error) as error:
        raise ValueError(f"the kept content can't be read: {error}") from error


def calendars_now(
    places: Sequence[CalendarPlace],
    read: Mapping[str, CalendarText],
    kept: Iterable[KeptCalendar],
    now: datetime,
) -> CalendarsNow:
    """Return what counts `now` (UTC) of the calendar at each place, by name: what was `read`, or was kept.

    A note names each calendar that has no room in the ledger.
    """
    before = {(calendar.name, calendar.place): calendar for calendar in kept}
    texts = {}
    for place in places:
        text = texts[place.name] = read.get(place.name, NOT_READ)
        last = before.get((place.name, _place_hash(place)))
        if not text.unread or last is None:
            continue
        # The last good content counts for a day. A clock that was ahead makes it no longer.
        since = min(last.unread_since or now, now).replace(microsecond=0)
        try:
            content = last.text if now < since + LAST_CONTENT else ""
        except ValueError:
            continue
        if content:
            counts = f"what it said before counts until {to_text(since + LAST_CONTENT)}"
            texts[place.name] = CalendarText(content, note=f"{text.unread}; {counts}", unread_since=since)
    fits = {calendar.name for calendar in kept_calendars(places, texts)}
    notes = [
        f"the calendar {name} is too large to be kept: when it can't be read, it allows no start before a "
        "deadline"
        for name, text in texts.items()
        if not text.unread and name not in fits
    ]
    return texts, tuple(notes)


def _keeps(kept: tuple[KeptCalendar, ...], fleet: Fleet) -> tuple[KeptCalendar, ...]:
    del kept
    return kept_calendars(fleet.settings.calendar_places(), fleet.snapshot.for_settings.calendars)


IN_LEDGER: LedgerPart[tuple[KeptCalendar, ...]] = LedgerPart(
    "calendars",
    code_of(Annotated[tuple[KeptCalendar, ...], Meta(max_length=CALENDARS)]),
    (),
    "what calendars said before is not known",
)
"""The last content of each calendar that could be used."""

FEATURE = Feature("calendars", ledger=IN_LEDGER, calendars=calendars_now, keeps=_keeps)
