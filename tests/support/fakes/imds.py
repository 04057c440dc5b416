"""IMDS on loopback: as strict as Azure's about who asks and how, and as moody as a script wants it."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.controlplane.processes import wait_for
from tests.support.fakes.loopback import Loopback

Event = dict[str, Any]

PATH = "/metadata/scheduledevents"
API_VERSION = "2020-07-01"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `cut` breaks off in mid-body; `delay` comes before it, `trickle` between its bytes.

    With `once`, it comes when a test sets that.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    delay: float = 0.0
    trickle: float = 0.0
    once: threading.Event | None = None


EVENT_ID = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


def event(
    vm: str | list[str],
    kind: str = "Freeze",
    *,
    event_id: str = EVENT_ID,
    status: str = "Scheduled",
    not_before: str = "Mon, 11 May 2026 22:26:58 GMT",
    description: str = "Host server is undergoing maintenance.",
    duration: int = 9,
    source: str = "Platform",
) -> Event:
    """An event as api-version 2020-07-01 has it."""
    return {
        "EventId": event_id,
        "EventType": kind,
        "ResourceType": "VirtualMachine",
        "Resources": [vm] if isinstance(vm, str) else vm,
        "EventStatus": status,
        "NotBefore": not_before,
        "Description": description,
        "EventSource": source,
        "DurationInSeconds": duration,
    }


def started(scheduled: Event) -> Event:
    """The same event once it has begun: without a date."""
    return {**scheduled, "EventStatus": "Started", "NotBefore": ""}


class FakeImds(Loopback):
    """Serves the events it is given, or the answers of a script first.

    `requests` are what came, `violations` what Azure would have refused: every test should find those empty.
    An acknowledgement of an event that is not listed is such a violation.
    What is acknowledged has started at once, unless `starts` is False.
    """

    def __init__(self, *, starts: bool = True, port: int = 0) -> None:
        self.starts = starts
        self.requests: list[str] = []
        self.user_agents: list[str] = []
        self.violations: list[str] = []
        self.acknowledged: list[str] = []
        self._script: list[Answer] = []
        self._refusals: list[Answer] = []
        self._incarnation = 0
        self._events: list[Event] = []
        self._lock = threading.Lock()
        super().__init__(self._handler(), port)

    def announce(self, *events: Event) -> None:
        """From now on these are all events there are."""
        with self._lock:
            self._events = list(events)
            self._incarnation += 1

    def touch(self) -> None:
        """A new incarnation of the same events."""
        self.announce(*self._events)

    def script(self, *answers: Answer) -> None:
        """Give these answers first, one for each request; then the events again."""
        with self._lock:
            self._script.extend(answers)

    def refuse(self, *answers: Answer) -> None:
        """Answer the next acknowledgements so, and start nothing."""
        with self._lock:
            self._refusals.extend(answers)

    def wait_for_requests(self, more: int = 1, *, seconds: float = 20) -> None:
        """Return once so many more requests have come than there are now."""
        goal = len(self.requests) + more
        wait_for(f"{more} more requests at IMDS", lambda: len(self.requests) >= goal, seconds=seconds)

    def wait_until_script_is_over(self, *, seconds: float = 20) -> None:
        """Return once the last scripted answer was asked for."""
        wait_for("end of the script of IMDS", lambda: not self._script, seconds=seconds)

    def next_answer(self) -> Answer:
        """Return the answer to the next request for the events."""
        with self._lock:
            if self._script:
                return self._script.pop(0)
            document = {"DocumentIncarnation": self._incarnation, "Events": self._events}
            return Answer(body=json.dumps(document).encode())

    def _start(self, ids: list[str]) -> Answer:
        with self._lock:
            if self._refusals:
                return self._refusals.pop(0)
            known = {one["EventId"].casefold() for one in self._events}
            unknown = sorted(one for one in ids if one.casefold() not in known)
            if unknown:
                # Azure documents 200 for a valid id and 400 for what is malformed. An id that it does not
                # list is never valid, and whoever posts one acts on an old list.
                return self._violation(f"unknown EventId {', '.join(unknown)}")
            self.acknowledged.extend(ids)
            if self.starts:
                self._events = [started(one) if one["EventId"] in ids else one for one in self._events]
                self._incarnation += 1
            # Azure answers 200 with no body, also for what is approved already.
            return Answer()

    def _violation(self, what: str) -> Answer:
        self.violations.append(what)
        return Answer(400, what.encode())

    def _refusal(self, request: BaseHTTPRequestHandler) -> str:
        url = urlsplit(request.path)
        if url.path != PATH:
            return f"path {url.path}"
        if parse_qs(url.query).get("api-version") != [API_VERSION]:
            return f"query {url.query}"
        if request.headers.get("Metadata") != "true":
            return "no header `Metadata: true`"
        if request.headers.get("X-Forwarded-For") is not None:
            return "header X-Forwarded-For"
        return ""

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                refusal = self._note()
                self._send(Answer(400, refusal.encode()) if refusal else fake.next_answer())

            def do_POST(self) -> None:
                refusal = self._note()
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                try:
                    ids = [start["EventId"] for start in json.loads(body)["StartRequests"]]
                except (ValueError, KeyError, TypeError):
                    refusal = f"malformed body {body!r}"
                    fake.violations.append(refusal)
                if refusal:
                    return self._send(Answer(400, refusal.encode()))
                return self._send(fake._start(ids))

            def _note(self) -> str:
                fake.requests.append(self.command)
                fake.user_agents.append(self.headers.get("User-Agent", ""))
                refusal = fake._refusal(self)
                if refusal:
                    fake.violations.append(refusal)
                return refusal

            def _send(self, answer: Answer) -> None:
                if answer.once is not None:
                    answer.once.wait(60)
                if answer.delay:
                    fake.stopping.wait(answer.delay)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body) + (10 if answer.cut else 0)))
                self.end_headers()
                try:
                    if answer.trickle:
                        for byte in answer.body:
                            self.wfile.write(bytes((byte,)))
                            self.wfile.flush()
                            if fake.stopping.wait(answer.trickle):
                                break
                    else:
                        self.wfile.write(answer.body)
                except OSError:
                    pass  # the client is gone
                self.close_connection = answer.cut or bool(answer.trickle)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
