"""The page of a process: made when it is asked for, once for each pass, with headers that forbid the rest."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.process import Observer, Passed, Past
from reconciler.features.page import html
from reconciler.features.page.facts import PageFacts
from reconciler.features.page.live import AGAIN, MOST_CASES, MOST_PAGES, LivePage
from reconciler.model.errors import Unreachable
from reconciler.model.findings import KnownFindings
from reconciler.model.panels import Panel
from reconciler.model.plan import Plan
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.values import replace
from tests.features.page.reading import parsed, section
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.cases import ended

SETTINGS = builders.settings()
PLAN = Plan(NOW, "Enforce")
PASSED = Passed(PLAN, SETTINGS, rehearsed=False)


class Process:
    """What is wrong with the process, and its clock."""

    def __init__(self) -> None:
        self.wrong = ""
        self.now = NOW

    def trouble(self) -> str:
        return self.wrong

    def time(self) -> datetime:
        return self.now


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def page(process: Process) -> LivePage:
    return LivePage(process.trouble, process.time)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[PageFacts]:
    """The facts of which a page was made."""
    found: list[PageFacts] = []
    real = html.as_html

    def counted(facts: Any, *chosen: Any, **options: Any) -> str:
        found.append(facts)
        return real(facts, *chosen, **options)

    monkeypatch.setattr(html, "as_html", counted)
    return found


def test_the_page_is_made_once_for_each_pass(page: LivePage, made: list[PageFacts]) -> None:
    page.after(PASSED)
    page.document()
    page.document()
    assert len(made) == 1
    page.after(Passed(replace(PLAN, mode="Finish"), SETTINGS))

    assert b"mode Finish" in page.document().body
    assert len(made) == 2


def test_the_page_is_made_again_when_other_readiness_is_known(
    process: Process, made: list[PageFacts]
) -> None:
    known = [KnownFindings(note="being read")]
    page = LivePage(process.trouble, process.time, lambda _: known[-1])
    page.after(PASSED)
    assert b"being read" in page.document().body
    known.append(KnownFindings(note="not permitted"))

    assert b"not permitted" in page.document().body
    assert b"not permitted" in page.document().body
    assert len(made) == 2


def test_nobody_reads_readiness_for_a_page_that_is_not_here(process: Process) -> None:
    asked: list[object] = []

    def ask(settings: object) -> KnownFindings:
        asked.append(settings)
        return KnownFindings()

    page = LivePage(process.trouble, process.time, ask)
    page.document()
    page.after(PASSED)
    page.stands_by("pod-b/1/ab12")
    page.document()
    assert asked == []

    page.after(PASSED)
    page.document()
    assert asked == [SETTINGS]


def test_trouble_is_on_the_page_and_makes_it_again_once_a_minute(
    page: LivePage, process: Process, made: list[object]
) -> None:
    page.after(PASSED)
    page.document()
    process.wrong = "no pass for 5 s"
    assert b"no pass for 5 s" in page.document().body
    process.wrong = "no pass for 6 s"
    assert b"no pass for 5 s" in page.document().body
    process.now += minutes(1)

    assert b"no pass for 6 s" in page.document().body
    assert len(made) == 3


def test_a_process_without_the_lock_shows_the_page_of_a_look_at_most_once_in_some_seconds(
    process: Process, made: list[object]
) -> None:
    looks: list[Passed] = []

    def look() -> Passed:
        if process.wrong:
            raise Unreachable("the server is away")
        looks.append(replace(PASSED))
        return looks[-1]

    page = LivePage(process.trouble, process.time, look=look)
    page.stands_by("pod-b/1/ab12")
    page.document()
    assert page.document().content_type.startswith("text/html")
    assert (len(looks), len(made)) == (1, 1)

    process.now += AGAIN
    page.document()
    assert len(looks) == 2

    process.now += AGAIN
    process.wrong = "no answer"
    assert b"pod-b/1/ab12 has the lock" in page.document().body


def test_a_process_without_the_lock_shows_who_has_it(page: LivePage, process: Process) -> None:
    process.wrong = "no pass has succeeded yet"
    assert page.document().body == b"There is no page yet: no pass has succeeded yet.\n"
    page.after(PASSED)
    page.stands_by("pod-b\x1b/1/ab12")

    here, forward = page.document().body.decode().splitlines()
    assert here.startswith("pod-b\\x1b/1/ab12 has the lock, and shows the page.")
    assert forward == "If the other one is a Pod: kubectl -n NAMESPACE port-forward pod/pod-b\\x1b 8080"
    assert page.document().status == "503 Service Unavailable"
    assert page.document().content_type.startswith("text/plain")


def test_a_page_says_how_old_it_is_and_is_red_after_three_intervals_without_a_pass(
    page: LivePage, process: Process, made: list[object]
) -> None:
    runs = Reconciler(Running.RUNNING, "pod-a/1/ab12", NOW, timedelta(seconds=20), "Enforce")
    page.after(Passed(replace(PLAN, reconciler=runs), SETTINGS, rehearsed=False))
    process.now += timedelta(seconds=12)
    assert '<b class="age">as of 12s ago</b>' in page.document().body.decode()
    process.now += timedelta(seconds=49)

    old = '<b class="age old">OLD: as of 1m1s ago, and no pass has ended since</b>'
    assert old in page.document().body.decode()
    assert len(made) == 1


def test_a_browser_loads_the_page_again_unless_its_reader_stops_that(page: LivePage) -> None:
    assert dict(page.document().headers)["Refresh"] == "5"
    page.after(PASSED)
    loads, stopped = page.document(), page.document("refresh=off")

    assert dict(loads.headers)["Refresh"] == "15"
    assert b'every 15s: <a href="?refresh=off">stop that</a>' in loads.body
    assert "Refresh" not in dict(stopped.headers)
    assert b'<a href="?">do that</a>' in stopped.body


def test_a_page_with_a_filter_is_made_for_it_and_so_many_in_a_pass_at_most(
    page: LivePage, made: list[object]
) -> None:
    page.after(PASSED)
    for _ in range(2):
        assert b'value="ledger"' in page.document("q=ledger&refresh=off").body
    assert len(made) == 1
    for number in range(MOST_PAGES):
        page.document(f"q={number}")

    refused = page.document("q=more")
    assert (refused.status, b"Too many different filters" in refused.body) == ("429 Too Many Requests", True)
    assert page.document().status == page.document("q=ledger&refresh=off").status == "200 OK"
    page.after(Passed(replace(PLAN, mode="Finish"), SETTINGS))
    assert page.document("q=more").status == "200 OK"


def test_a_file_says_that_it_does_not_follow_what_happens(process: Process, tmp_path: Path) -> None:
    with LivePage(process.trouble, process.time, file=tmp_path / "page.html") as page:
        page.after(PASSED)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert "It is a file, and does not follow what happens since." in text
    assert "as of" not in text


def test_only_the_last_ended_cases_are_kept(page: LivePage, made: list[PageFacts]) -> None:
    for number in range(MOST_CASES + 5):
        page.keep([ended(f"n{number}")])
    page.after(PASSED)

    page.document()
    assert len(made[-1].history.ended) == MOST_CASES
    assert made[-1].history.ended[-1].place.node == f"n{MOST_CASES + 4}"


def test_cases_of_an_earlier_process_are_shown_and_one_that_ends_again_is_shown_once(
    process: Process, made: list[PageFacts]
) -> None:
    class Before(Observer):
        def past(self, since: datetime, now: datetime) -> Past:
            return Past(NOW - minutes(600), (ended("before", at=NOW - minutes(90)), ended("twice")))

    page = LivePage(process.trouble, process.time, others=Before())
    page.__enter__()
    page.keep([ended("twice"), ended("now")])
    page.after(PASSED)

    shown = section(parsed(page.document().body.decode()), "timeline").text
    assert [case.place.node for case in made[-1].history.ended] == ["before", "twice", "now"]
    assert "before" in shown
    assert "are from the file of --history" in shown


def test_the_headers_permit_the_style_of_the_page_and_nothing_else(page: LivePage) -> None:
    page.after(PASSED)
    document = page.document()
    (style,) = parsed(document.body.decode()).all("style")
    digest = hashlib.sha256(str(style.children[0]).encode()).digest()
    headers = dict(document.headers)

    assert document.content_type == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"] == (
        "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; "
        f"style-src 'sha256-{base64.b64encode(digest).decode()}'"
    )
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.heavy
def test_a_process_that_nobody_asks_for_its_page_does_not_load_what_makes_it() -> None:
    code = (
        "import sys, jobs.commands.serve, jobs.commands.report;"
        "made_of = ('jinja2', 'reconciler.features.page.', 'reconciler.features.readiness.');"
        "print([name for name in sys.modules if name.startswith(made_of) and not name.endswith('.process')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_an_error_in_what_other_features_show_first_leaves_the_rest_whole(process: Process) -> None:
    class Broken(Observer):
        def panels(self, passed: Passed, findings: KnownFindings | None) -> Sequence[Panel]:
            raise RuntimeError("boom")

    page = LivePage(process.trouble, process.time, others=Broken())
    page.after(PASSED)
    text = parsed(page.document().body.decode()).text

    assert "what other features show first can't be shown" in text
    assert "Who must do something?" in text
