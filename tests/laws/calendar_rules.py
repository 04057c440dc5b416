"""Mutants of calendars: their limits, nights in which the clocks change, and what is not known."""

from __future__ import annotations

from tests.laws.mutant import Mutant

CALENDAR_RULES = (
    Mutant(
        4,
        "a freeze that can't be read allows nothing",
        "reconciler/settings/calendars.py",
        'NotAllowed(one.name, Always(), f"can\'t be read: {unread}", False, one.node_selector)',
        'NotAllowed(one.name, Imported(), f"can\'t be read: {unread}", False, one.node_selector)',
        "tests/stages/test_calendars_of_a_pass.py",
    ),
    Mutant(
        4,
        "a freeze that can't be read yields to a deadline",
        "reconciler/settings/calendars.py",
        'f"can\'t be read: {unread}", False,',
        'f"can\'t be read: {unread}", one.absolute,',
        "tests/stages/test_calendars_of_a_pass.py",
    ),
    Mutant(
        4,
        "windows that can't be read do not open",
        "reconciler/settings/calendars.py",
        "times or Imported()",
        "times or Always()",
        "tests/settings/test_calendars.py",
    ),
    Mutant(
        4,
        "a pass decides by what it has read of the calendars",
        "reconciler/run.py",
        "settings = settings.with_calendars(snapshot.calendars)",
        "settings = settings.with_calendars({})",
        "tests/stages/test_calendars_of_a_pass.py",
    ),
    Mutant(
        17,
        "an old content of a calendar counts for a day only",
        "reconciler/clients/calendars.py",
        " or good.seen + KEPT <= now",
        "",
        "tests/clients/test_calendars.py",
    ),
    Mutant(
        17,
        "an API server that does not answer is asked for one calendar only",
        "reconciler/clients/calendars.py",
        "away = str(error)",
        "pass",
        "tests/clients/test_calendars.py",
    ),
    Mutant(
        16,
        "components of a calendar are not nested without end",
        "reconciler/calendar/ical_lines.py",
        "if len(open_ones) == _DEEPEST:",
        "if False:",
        "tests/calendar/test_ical.py",
    ),
    Mutant(
        16,
        "a calendar that is cut off is refused",
        "reconciler/calendar/ical_lines.py",
        "    if open_ones:\n        missing",
        "    if False:\n        missing",
        "tests/calendar/test_ical.py",
    ),
    Mutant(
        0,
        "a duration is elapsed time",
        "reconciler/calendar/recurrence.py",
        "return to_utc(start + self.wall, zone) + self.elapsed",
        "return to_utc(start + self.wall + self.elapsed, zone)",
        "tests/calendar/test_ical.py",
    ),
    Mutant(
        0,
        "a moved instance leaves its old time",
        "reconciler/calendar/ical.py",
        "without=one.event.without | moments,",
        "without=one.event.without,",
        "tests/calendar/test_ical_oracle.py",
    ),
    Mutant(
        0,
        "a time that a zone of a file skips has the offset before the change",
        "reconciler/calendar/ical_zones.py",
        "return self._before[skipped[0]] if skipped",
        "return self._after[skipped[0]] if skipped",
        "tests/calendar/test_ical.py",
    ),
    Mutant(
        0,
        "the last date that AKS does not allow is not allowed",
        "reconciler/calendar/aks_maintenance.py",
        '_date(entry.get("end"), f"{here}.end") + _DAY',
        '_date(entry.get("end"), f"{here}.end")',
        "tests/calendar/test_aks_maintenance.py",
    ),
)
