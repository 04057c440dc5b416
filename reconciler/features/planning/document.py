"""What will start when, as a document for machines. `docs/output.md` has a heading for each key."""

from __future__ import annotations

from reconciler import __version__
from reconciler.calendar.windows import Closure, Opening
from reconciler.report.ahead import PlanAhead, PlannedCase, SharedCalendar
from reconciler.report.values import Document, keys, plain, settings_value

keys(PlannedCase, "name=node zone pool status kinds notBefore schedule")
keys(SharedCalendar, "nodes openings freezes=closures")
keys(Opening, "start end window")
keys(Closure, "start end name reason absolute")


def ahead_document(ahead: PlanAhead) -> Document:
    """Return the look ahead as plain values; moments are RFC 3339 in UTC."""
    plan = ahead.plan
    document: Document = plain(
        {
            "version": "v1",
            "program": __version__,
            "at": plan.now,
            "until": ahead.until,
            "mode": plan.mode,
            "settings": settings_value(plan.settings, plan.now),
            "timeZone": plan.time_zone,
            "notes": plan.notes,
            "unseen": plan.unseen,
            "openness": ahead.openness,
            "cases": ahead.cases,
            "later": ahead.later,
            "calendars": ahead.calendars,
        }
    )
    return document
