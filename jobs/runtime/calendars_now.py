"""The calendars of the settings, for a command that runs no pass."""

from __future__ import annotations

from datetime import datetime

from jobs.runtime.environment import Target
from reconciler.features.calendars.reading import Calendars
from reconciler.model.content import CalendarText, Holder
from reconciler.model.errors import ClusterError
from reconciler.settings.schema import Settings


def with_calendars(settings: Settings, target: Target | None, now: datetime) -> tuple[Settings, list[str]]:
    """Return the settings with what their calendars say `now` (aware), and a note for each that is unread.

    The API server is asked only for calendars in ConfigMaps and Secrets, and not without a `target`.
    """
    places = settings.calendar_places()
    if not places:
        return settings, []
    found: dict[str, CalendarText]
    if target is None or all(place.holder is Holder.FILE for place in places):
        found = dict(Calendars().read(places, now))
    else:
        from reconciler.kubernetes.connection import Connection

        try:
            connection = Connection(target.kubeconfig, target.context)
        except ClusterError as error:
            unread = CalendarText(unread=str(error))
            found = {place.name: unread for place in places if place.holder is not Holder.FILE}
            files = [place for place in places if place.holder is Holder.FILE]
            found.update(Calendars().read(files, now))
        else:
            try:
                found = dict(Calendars(connection).read(places, now))
            finally:
                connection.close()
    notes = [f"the calendar {name} can't be read: {one.unread}" for name, one in found.items() if one.unread]
    return settings.with_calendars(found), notes
