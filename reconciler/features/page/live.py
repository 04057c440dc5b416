"""The page of a process that makes passes: kept as facts, and made when somebody asks for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from jobs.runtime.health import ByQuery, Document, Make
from jobs.runtime.output import write_output
from jobs.runtime.process import Observer, Passed, Past
from reconciler.model.ended_case import EndedCase
from reconciler.model.errors import ReconcilerError
from reconciler.model.reconciler import pod_of
from reconciler.report import safe
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.features.page.chosen import PageFilter
    from reconciler.features.page.facts import History, PageFacts
    from reconciler.model.findings import KnownFindings
    from reconciler.model.panels import Panel

MOST_CASES = 1_000
"""Ended cases that are kept for the page, the last ones."""

AGAIN = timedelta(seconds=10)
"""How long a look of a standby counts."""

_APART = timedelta(seconds=30)
"""How far passes are apart at most where that is not known."""

MOST_PAGES = 20
"""Pages with different filters that are made of one pass: each takes time of the process."""

_TOO_MANY = b"Too many different filters were asked for; try again in some seconds.\n"

_SOON = 5
"""Seconds after which a browser asks again while there is no page."""

HTML = "text/html; charset=utf-8"

_DIGITS = re.compile(r"\d+")


class _PageContent(Struct, frozen=True):
    """What a page was made of. `reason` is what is wrong with the process, and the minute of it."""

    passed: Passed
    reason: str
    readiness: KnownFindings | None

    def same(self, other: _PageContent) -> bool:
        """Whether the other page has the same contents; to compare two plans would take longer."""
        return (
            self.passed is other.passed and self.reason == other.reason and self.readiness is other.readiness
        )


def page_facts(
    passed: Passed,
    history: History,
    trouble: tuple[str, ...] = (),
    readiness: KnownFindings | None = None,
    *,
    panels: Callable[[], Sequence[Panel]] = tuple,
    served: bool = False,
) -> PageFacts:
    """Return what the page of a pass is made of; `panels` returns what other features show first."""
    from reconciler.features.page.facts import PageFacts
    from reconciler.model.findings import KnownFindings
    from reconciler.model.problems import guarded
    from reconciler.report.explain import obstacles
    from reconciler.settings.explain import explain_settings

    plan = passed.plan
    settings = passed.settings.with_calendars(plan.settings.calendars)
    keys = settings.keys.names
    shown, faults = guarded("what other features show first can't be shown", panels, ())
    return PageFacts(
        plan,
        passed.rehearsed,
        settings.calendar,
        passed.outcomes,
        {node.node: obstacles(node, keys) for node in plan.nodes},
        history,
        explain_settings(settings),
        (*trouble, *faults),
        readiness or KnownFindings(),
        served,
        tuple(shown),
    )


class LivePage(Observer):
    """Keeps the last pass and the cases that have ended, and makes their page at most once for each pass.

    The page is made again when other readiness is known, and each minute while something is wrong with the
    process. A pass and a reader may come from different threads.
    """

    def __init__(
        self,
        trouble: Callable[[], str],
        now: Callable[[], datetime],
        readiness: Callable[[Settings], KnownFindings] | None = None,
        *,
        others: Observer | None = None,
        file: Path | None = None,
        look: Callable[[], Passed] | None = None,
    ) -> None:
        """`trouble` says what is wrong with the process, empty if nothing. `now` is a clock (aware).

        `readiness` returns at once what is known, the same object until that changes; without it there is
        none on the page. `others` may know the cases from before this process. The last page goes to `file`.
        `look` rehearses a pass while another process has the lock; it may raise ClusterError.
        """
        self._trouble, self._now, self._readiness = trouble, now, readiness
        self._others, self._file = others, file
        self._since = now()
        self._read_from: datetime | None = None
        self._passed: Passed | None = None
        self._holder = ""
        self._look = look
        self._looked: tuple[datetime, Passed] | None = None
        self._ended: tuple[EndedCase, ...] = ()
        self._made: tuple[_PageContent, PageFacts, dict[tuple[PageFilter, bool], str]] | None = None
        self._making = Lock()

    def __enter__(self) -> Self:
        """Learn the cases of the days that the page sums up."""
        if self._others is not None:
            from reconciler.features.page.facts import SUMMED

            now = self._now()
            past = self._others.past(now - SUMMED, now)
            if past is not None:
                self.remember(past)
        return self

    def __exit__(self, *error: object) -> None:
        """Write the last page to the file, if there is one; raises OutputError."""
        if self._file is None or any(error):
            return
        passed, trouble = self._passed, self._trouble()
        if passed is None:
            write_output(self._file, _nothing(self._holder, trouble).decode())
            return
        from reconciler.features.page.html import as_html

        write_output(self._file, as_html(self._facts(passed, trouble, self._known(passed))))

    @property
    def documents(self) -> Mapping[str, Make]:
        """Send the page."""
        return {"/": ByQuery(self.document)}

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """Keep cases that have ended for the page."""
        # A pass that was killed ends its cases again, and the last end counts.
        kept: dict[tuple[str, datetime], EndedCase] = {}
        for case in (*self._ended, *cases):
            kept.pop(case.identity, None)
            kept[case.identity] = case
        self._keep(tuple(kept.values()))

    def remember(self, past: Past) -> None:
        """Show also the cases that an earlier process has written. Call it before the first pass."""
        self._read_from = past.since
        self._keep(past.cases)

    def _keep(self, cases: tuple[EndedCase, ...]) -> None:
        """Keep the last cases, and since when all of them are known."""
        self._ended = cases[-MOST_CASES:]
        if len(cases) > MOST_CASES and self._read_from is not None:
            self._read_from = self._ended[0].times.ended
        elif len(cases) > MOST_CASES:
            self._since = self._ended[0].times.ended

    def after(self, passed: Passed) -> None:
        """Show this pass from now on."""
        self._passed = passed

    def stands_by(self, holder: str) -> None:
        """Show from now on that another process has the lock; what this one knew is no longer true."""
        self._passed, self._holder = None, holder

    def document(self, query: str = "") -> Document:
        """Return the page of the last pass, or of a look while another process has the lock.

        Without both it is a line of text. The browser loads it again, unless the query has `refresh=off`. The
        rest of the query is a filter.
        """
        refreshes = "refresh=off" not in query.split("&")
        passed, trouble = self._passed, self._trouble()
        if passed is None and self._holder and self._look is not None:
            try:
                with self._making:
                    now = self._now()
                    # A look reads all nodes, so one counts for some seconds.
                    if self._looked is None or now - self._looked[0] >= AGAIN:
                        self._looked = now, self._look()
                    passed = self._looked[1]
            except ReconcilerError as error:
                trouble = trouble or str(error)
        if passed is None:
            text = _nothing(self._holder, trouble)
            headers = _headers("", _SOON if refreshes else None)
            return Document("text/plain; charset=utf-8", text, headers, "503 Service Unavailable")
        # A process that nobody asks for its page does not load what makes it.
        from reconciler.features.page.chosen import chosen_by
        from reconciler.features.page.html import REFRESH, as_html, style_hash, with_age

        # The trouble may name a time that grows with each second.
        reason = f"{_DIGITS.sub('', trouble)} {self._now():%F %H:%M}" if trouble else ""
        with self._making:
            readiness = self._known(passed)
            shown = _PageContent(passed, reason, readiness)
            if self._made is None or not self._made[0].same(shown):
                self._made = shown, self._facts(passed, trouble, readiness, served=True), {}
            _, facts, pages = self._made
            chosen = chosen_by(query)
            page = pages.get((chosen, refreshes))
            if page is None and chosen.any and len(pages) >= MOST_PAGES:
                soon = _headers("", _SOON)
                return Document("text/plain; charset=utf-8", _TOO_MANY, soon, "429 Too Many Requests")
            if page is None:
                page = pages[chosen, refreshes] = as_html(facts, chosen, refreshes=refreshes)
        plan = passed.plan
        # Such a pass goes by the slowest clock, and this process does not.
        at = plan.now if plan.disagreement is None else plan.now + plan.disagreement.behind
        page = with_age(page, at, self._now(), plan.reconciler.interval or _APART)
        again = int(REFRESH.total_seconds()) if refreshes else None
        return Document(HTML, page.encode("utf-8", "replace"), _headers(f"'{style_hash()}'", again))

    def _known(self, passed: Passed) -> KnownFindings | None:
        return self._readiness(passed.settings) if self._readiness is not None else None

    def _facts(
        self, passed: Passed, trouble: str, readiness: KnownFindings | None, *, served: bool = False
    ) -> PageFacts:
        """Return what each page of a pass is made of, whatever its filter is."""
        from reconciler.features.page.facts import History

        history = History(self._since, self._ended, self._read_from)
        others = self._others or Observer()
        panels = partial(others.panels, passed, readiness)
        troubles = (trouble,) if trouble else ()
        return page_facts(passed, history, troubles, readiness, panels=panels, served=served)


def _nothing(holder: str, trouble: str) -> bytes:
    if holder:
        open_it = f"kubectl -n NAMESPACE port-forward pod/{pod_of(holder)} 8080"
        text = (
            f"{holder} has the lock, and shows the page. This process can't show it now"
            f"{f': {trouble}' if trouble else ''}.\nIf the other one is a Pod: {open_it}\n"
        )
    else:
        text = f"There is no page yet: {trouble or 'no pass has ended'}.\n"
    return safe.lines(text).encode("utf-8", "replace")


def _headers(style: str, again: int | None) -> tuple[tuple[str, str], ...]:
    """Return the headers of a document that loads nothing, and has only the style with this hash.

    `again` is after how many seconds the browser loads it again; None: it does not.
    """
    nothing = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    allowed = f"form-action 'self'; style-src {style}" if style else "form-action 'none'"
    return (
        *((("Refresh", str(again)),) if again is not None else ()),
        ("Content-Security-Policy", f"{nothing}; {allowed}"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    )
