"""The windows and freezes of calendars, from what a pass has read of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.calendar.occurrences import Always
from reconciler.calendar.recurrence import Imported
from reconciler.calendar.windows import NotAllowed, Window
from reconciler.model.calendar_text import CalendarPlace, CalendarText
from reconciler.settings.sections.calendars import CalendarSettings, CalendarUse

NOT_READ = CalendarText(unread="nothing has read it yet")


def rules_of(
    calendars: Iterable[tuple[CalendarSettings, CalendarPlace]], texts: Mapping[str, CalendarText]
) -> tuple[list[Window], list[NotAllowed]]:
    """Return the windows and the freezes of the calendars, given what was read of each by its name.

    A calendar that could not be read allows nothing: its windows do not open, and its freeze has no end.
    Its freeze is never absolute, because a mistake in a file must not hold nodes past their deadline.
    """
    windows: list[Window] = []
    freezes: list[NotAllowed] = []
    for one, place in calendars:
        times, unread = _times(place, texts.get(one.name, NOT_READ))
        if one.use is CalendarUse.WINDOWS:
            windows.append(Window(one.name, times or Imported(), one.node_selector, unread))
        elif times is None:
            freezes.append(
                NotAllowed(one.name, Always(), f"can't be read: {unread}", False, one.node_selector)
            )
        else:
            freezes.append(NotAllowed(one.name, times, one.reason, one.absolute, one.node_selector))
    return windows, freezes


def _times(place: CalendarPlace, read: CalendarText) -> tuple[Imported | None, str]:
    """Return the times of a calendar, or None and why they are not known."""
    if read.unread:
        return None, read.unread
    from reconciler.settings.calendar_text import parse_calendar  # a pass without calendars needs no parser

    try:
        return parse_calendar(read.text, place), ""
    except ValueError as error:
        return None, str(error)
