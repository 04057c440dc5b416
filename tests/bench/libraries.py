"""What libraries cost and leave out where this program does the same by hand.

    python -m tests.bench.libraries

- CPU seconds to import each, beside its own modules; each import has a process of its own
- CPU seconds to read a list of 1,000 nodes of AKS with 50 images, by the client `kubernetes` and by ours
- CPU seconds for a year of an iCalendar rule, by `recurring-ical-events` and by ours; a rule is stopped after
  ten seconds
- what `apprise` says of answers by which a message is not delivered
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from zoneinfo import ZoneInfo

from reconciler.kubernetes.wire.formats import node_format
from reconciler.model.node import Wanted
from tests.support.controlplane.fill import Pool
from tests.support.fakes.loopback import Loopback
from tests.support.shapes import as_protobuf

_IMPORTED = (
    "kubernetes.client",
    "azure.mgmt.compute",
    "apprise",
    "icalendar, recurring_ical_events",
    "reconciler.kubernetes.reader",
    "reconciler.features.notices.transports.table",
    "reconciler.features.calendars.ical",
)
_RULES = ("FREQ=DAILY", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=SECONDLY")
_PATIENCE = 10
_NODES = 1000
_BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
_YEAR = timedelta(days=365)


def main() -> None:
    """Print the rows."""
    for names in _IMPORTED:
        print(f"import {names}: {_of_process(f'import {names}'):.2f} s", flush=True)
    _nodes()
    for rule in _RULES:
        theirs = _of_process(f"from tests.bench.libraries import by_library; by_library({rule!r})")
        print(
            f"{rule}: {f'{theirs:.2f} s' if theirs else f'stopped after {_PATIENCE} s'}, ours {_ours(rule)}"
        )
    _apprise()


def _of_process(code: str) -> float:
    """Return the CPU seconds of a process beyond those of an empty one, 0 if it had to be stopped."""
    measured = f"import time\nbegan = time.process_time()\n{code}\nprint(time.process_time() - began)"
    try:
        run = subprocess.run(
            (sys.executable, "-c", measured), capture_output=True, text=True, check=True, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:
        return 0.0
    return float(run.stdout.splitlines()[-1])


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _nodes() -> None:
    from kubernetes import client

    items = [Pool("np").node(number, images=50) for number in range(_NODES)]
    document = json.dumps({"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": items})
    encoded = as_protobuf("NodeList", items, "", "1")
    ours = node_format(Wanted(frozenset({"Ready"}), "node-maintenance.dev"))
    api = client.ApiClient()
    theirs = _timed(lambda: api.deserialize(document, "V1NodeList", "application/json"))
    print(f"{_NODES} nodes: {theirs:.2f} s, ours {_timed(lambda: ours.page(encoded)):.2f} s", flush=True)


def _calendar(rule: str) -> str:
    event = (
        "UID:1",
        "DTSTAMP:20260101T000000Z",
        "DTSTART:20260101T080000Z",
        "DURATION:PT1H",
        f"RRULE:{rule}",
    )
    lines = (
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:a",
        "BEGIN:VEVENT",
        *event,
        "END:VEVENT",
        "END:VCALENDAR",
    )
    return "\r\n".join((*lines, ""))


def by_library(rule: str) -> None:
    """Expand a rule for a year."""
    import icalendar
    import recurring_ical_events

    calendar = icalendar.Calendar.from_ical(_calendar(rule))
    recurring_ical_events.of(calendar).between(_BEGIN, _BEGIN + _YEAR)


def _ours(rule: str) -> str:
    from reconciler.features.calendars.ical import parse_ical
    from reconciler.features.calendars.ical_lines import CalendarMistake

    def expand() -> None:
        for event in parse_ical(_calendar(rule), ZoneInfo("UTC")).events:
            list(event.runs(_BEGIN, _BEGIN + _YEAR))

    try:
        return f"{_timed(expand):.2f} s"
    except CalendarMistake as mistake:
        return f"refused: {mistake}"


class _Handler(BaseHTTPRequestHandler):
    """Answers with the status in the path; one that redirects leads to a page that answers a GET."""

    def do_POST(self) -> None:
        self._answer(int(self.path.strip("/")))

    def do_GET(self) -> None:
        self._answer(200)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Retry-After", "30")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def _apprise() -> None:
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    with Loopback(_Handler) as server:
        for status in (200, 302, 400, 429):
            client = apprise.Apprise()
            client.add(f"json://127.0.0.1:{server.port}/{status}")
            print(f"apprise, answer {status}: {'delivered' if client.notify('text') else 'not delivered'}")


if __name__ == "__main__":
    main()
