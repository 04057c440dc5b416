"""What will start when, as a document for machines. `docs/output.md` has a heading for each key."""

from __future__ import annotations

from reconciler import __version__
from reconciler.model.moments import to_text
from reconciler.report.ahead import PlanAhead, PlannedCase, SharedCalendar
from reconciler.report.values import Document, moment_value, schedule_value, settings_value, unseen_value


def ahead_document(ahead: PlanAhead) -> Document:
    """Return the look ahead as plain values; moments are RFC 3339 in UTC."""
    plan = ahead.plan
    return {
        "version": "v1",
        "program": __version__,
        "at": to_text(plan.now),
        "until": to_text(ahead.until),
        "mode": plan.mode,
        "settings": settings_value(plan.settings, plan.now),
        "timeZone": plan.time_zone,
        "notes": list(plan.notes),
        "unseen": [unseen_value(one) for one in plan.unseen],
        "openness": ahead.openness,
        "cases": [_case(one) for one in ahead.cases],
        "later": [_case(one) for one in ahead.later],
        "calendars": [_calendar(one) for one in ahead.calendars],
    }


def _case(case: PlannedCase) -> Document:
    return {
        "name": case.node,
        "zone": case.zone,
        "pool": case.pool,
        "status": case.status.value,
        "kinds": list(case.kinds),
        "notBefore": moment_value(case.not_before),
        "schedule": schedule_value(case.schedule),
    }


def _calendar(calendar: SharedCalendar) -> Document:
    return {
        "nodes": list(calendar.nodes),
        "openings": [
            {"start": to_text(one.start), "end": moment_value(one.end), "window": one.window}
            for one in calendar.openings
        ],
        "freezes": [
            {
                "start": to_text(one.start),
                "end": moment_value(one.end),
                "name": one.name,
                "reason": one.reason,
                "absolute": one.absolute,
            }
            for one in calendar.closures
        ],
    }
