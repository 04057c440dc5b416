"""Reads the calendars that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.runtime.process import Process

if TYPE_CHECKING:
    from reconciler.kubernetes.connection import Connection
    from reconciler.model.ports import CalendarReader


def _calendars(connection: Connection | None) -> CalendarReader:
    from reconciler.features.calendars.reading import Calendars

    return Calendars(connection)


PROCESS = Process(calendars=_calendars)
