"""Makes the page of its facts. Every text is made safe on its way into the HTML."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import TypeVar
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from reconciler import __version__
from reconciler.calendar.values import format_duration, format_local, in_zone, with_time_left
from reconciler.features.page.cases import Cases, Sources, age, blocking, cases, paragraphs, sources
from reconciler.features.page.chosen import ALL, PageFilter, only
from reconciler.features.page.chosen import STATES as CHOICES
from reconciler.features.page.facts import (
    BACK,
    MEANINGS,
    STATES,
    Cell,
    PageFacts,
    Square,
    listed,
    profiles,
    used,
    zones,
)
from reconciler.features.page.timeline import ZOOM, Chart, Scale, chart, drawings
from reconciler.features.page.top import EntryList, asks, next_steps, openness, past_misses, wrong
from reconciler.model.moments import to_text
from reconciler.model.problems import guarded
from reconciler.model.reconciler import OVERDUE_AFTER
from reconciler.report import safe
from reconciler.report.acting import acting_line
from reconciler.report.commands import in_parts
from reconciler.report.document import to_report
from reconciler.report.text import headline, settings_lines

REFRESH = timedelta(seconds=15)
"""After how long a browser loads a page that is served again."""

_ANCHOR = re.compile(r"[a-z0-9.-]{1,63}")
"""Names that are the anchor of their row. One that is longer, or no name at all, has a number instead."""

_LONGEST = 600
"""Characters of one text."""

Part = TypeVar("Part")
Other = TypeVar("Other")

AGE = Markup("<!--age-->")
"""Where a page that is served has its age. Texts are escaped, so nothing else on a page is the same."""


def as_html(facts: PageFacts, chosen: PageFilter = ALL, *, refreshes: bool = True) -> str:
    """Return the page as one HTML document; moments are in the time zone of the settings.

    It is about the chosen nodes, and says how much is wrong or to be done elsewhere. `refreshes` says that a
    browser loads a page that is served again. A part that ends in an error of this program is empty, and the
    page says so on top.
    """
    parts, whole = _Parts(), facts
    names = parts.made("the filter", lambda: chosen.nodes(whole), None)
    facts = only(facts, names)
    plan, part = facts.plan, facts.readiness.part
    report = to_report(plan, facts.outcomes, rehearsed=facts.rehearsed)
    days, hours = Scale(plan.now, facts.zone), Scale(plan.now, facts.zone, *ZOOM)
    fleet = parts.made("the fleet", lambda: zones(facts), ())
    rows = parts.made("the table of cases", lambda: cases(facts, report), Cases(()))
    drawn = parts.made("the timeline", lambda: drawings(facts), ())
    shown = {
        "wrong": parts.made("what is wrong", lambda: wrong(whole, names), EntryList(())),
        "past": parts.made("the past misses", lambda: past_misses(whole, names), EntryList(())),
        "next": parts.made("what happens next", lambda: next_steps(whole, names), EntryList(())),
        "asks": parts.made("who must do something", lambda: asks(whole, names), EntryList(())),
        "openness": parts.made("the windows", lambda: openness(facts), "not known"),
        "days": parts.made("the timeline", lambda: chart(facts, drawn, days), Chart((), ())),
        "hours": parts.made("the next hours", lambda: chart(facts, drawn, hours), Chart((), ())),
        "blocking": parts.made("the budgets", lambda: blocking(plan), ()),
        "sources": parts.made("the sources", lambda: sources(facts), Sources()),
    }
    shown["ticks"] = {scale: tuple(scale.ticks()) for scale in (days, hours)}
    others = listed(fleet, {row.node for row in rows.rows})
    # The IDs of rows are the same on the next page.
    anchors = {
        name: f"node-{name}" if _ANCHOR.fullmatch(name) else f"case-{number}"
        for number, name in enumerate([*(row.node for row in rows.rows), *(node.node for node in others)], 1)
    }
    template = _environment().get_template("page.html")
    return template.render(
        **shown,
        in_time=whole.history.in_time(plan.now),
        zone=facts.zone,
        program=__version__,
        now=format_local(plan.now, facts.zone),
        at=to_text(plan.now),
        age=AGE if facts.served else "",
        facts=facts,
        observes=whole.observes,
        plan=plan,
        about=[headline(report).partition(" · ")[2], *settings_lines(plan)],
        acting=acting_line(plan.reconciler, plan.now),
        faults=parts.faults,
        days_scale=days,
        hours_scale=hours,
        zones=fleet,
        cells=used(fleet),
        profiles=profiles(facts.plan),
        states=STATES,
        meanings=MEANINGS,
        age_of=age,
        cases=rows,
        anchors=anchors,
        others=others,
        paragraphs=paragraphs(facts.words),
        unheard=_unheard(facts),
        readiness=facts.readiness,
        findings=tuple(filter(chosen.finding, part.rows)) if part is not None else (),
        chosen=chosen,
        matches=len(plan.fleet),
        of_all=len(whole.plan.fleet),
        pools=sorted({node.pool for node in whole.plan.fleet if node.pool}),
        refresh_words=f"every {format_duration(REFRESH)}" if refreshes else "",
        with_refresh=chosen.query,
        without_refresh=f"{chosen.query}&refresh=off".removeprefix("&"),
        choices=CHOICES,
    )


def with_age(page: str, at: datetime, now: datetime, apart: timedelta) -> str:
    """Return a page of a pass `at` that moment, as it is sent `now`; both are aware.

    `apart` is how far the passes are apart at most.
    """
    old = now - at > OVERDUE_AFTER * apart
    ago = format_duration(max(now - at, timedelta()))
    said = f"OLD: as of {ago} ago, and no pass has ended since" if old else f"as of {ago} ago"
    return page.replace(AGE, f'<b class="{"age old" if old else "age"}">{said}</b>', 1)


class _Parts:
    """Makes the parts of a page, each inside a boundary, and keeps what went wrong."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def made(self, name: str, make: Callable[[], Part], otherwise: Other) -> Part | Other:
        part, problems = guarded(f"{name} can't be shown", make, otherwise)
        self.faults += problems
        return part


def style_hash() -> str:
    """Return the hash of the page's style for a content security policy, as `sha256-…`."""
    digest = hashlib.sha256(_style().encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _unheard(facts: PageFacts) -> str:
    """Return which part of the last hours the timeline can't show, empty if it shows all of it."""
    since, read_from = facts.history.since, facts.history.read_from
    first = facts.plan.now - BACK
    if since is None:
        return "Only reconciler serve shows the cases that have ended."
    if since <= first:
        return ""
    began = to_text(since)
    if read_from is None:
        return f"Cases that ended before {began} are not shown: this process did not run then."
    said = f"Cases that ended before {began}, when this process started, are from the file of --history."
    left_out = f" Those before {to_text(read_from)} are not shown, because only the end of it is read."
    return f"{said}{left_out}" if read_from > first else said


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("reconciler.features.page", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["style"] = _style_element
    made.filters["squares"] = _squares
    made.filters["coded"] = _coded
    made.filters["with_age"] = _with_age
    made.filters["moment"] = to_text
    made.filters["lines"] = _lines
    return made


@pass_context
def _squares(context: Context, squares: tuple[Square, ...]) -> Markup:
    """Return the squares of a pool. Most nodes are in service, and take few characters."""
    link = Markup('<a class="sq {}" href="#{}" title="{}"></a>')
    named, plain = Markup('<i class="{}" title="{}"></i>'), Markup('<i class="{}"></i>')
    serving = Markup("<i></i>")
    anchors = context["anchors"]
    return Markup().join(
        link.format(square.cell.value, anchors[square.node], safe.line(square.about))
        if square.node in anchors
        else named.format(square.cell.value, safe.line(square.about))
        if square.about
        else (serving if square.cell is Cell.SERVING else plain.format(square.cell.value))
        for square in squares
    )


@pass_context
def _coded(context: Context, text: str) -> Markup:
    """Return a text of ours, with names between backticks as code, and its commands to copy as a whole."""
    command, code = Markup('<code class="command">{}</code>'), Markup("<code>{}</code>")
    return Markup().join(
        command.format(part.text) if part.command else code.format(part.text) if part.code else part.text
        for part in in_parts(str(_shown(context, text)))
    )


@pass_context
def _with_age(context: Context, text: str) -> str:
    """Return a text with how long ago its first moment was."""
    return with_time_left(text, context["plan"].now)


@pass_context
def _lines(context: Context, lines: tuple[str, ...]) -> Markup:
    """Return lines to copy together, each made safe for itself."""
    return Markup("\n").join(str(_shown(context, line)) for line in lines)


def _style_element() -> Markup:
    return Markup(f"<style>{_style()}</style>")


@cache
def _style() -> str:
    loader = PackageLoader("reconciler.features.page", "")
    return loader.get_source(Environment(autoescape=True), "style.css")[0]


@pass_context
def _shown(context: Context, value: object) -> object:
    """Return what the page shows of a value: a short line without control characters, moments in the zone."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    zone = context.get("zone")
    text = value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
    return safe.line(in_zone(text, zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC"), named=False))
