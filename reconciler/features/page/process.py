"""Shows the page of a process, of a report, and of the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.runtime.output import check_output
from jobs.runtime.process import (
    Observer,
    Passed,
    Process,
    Reported,
    ReportForm,
    Surroundings,
    first,
    processes,
)

if TYPE_CHECKING:
    from reconciler.model.panels import Panel

_OPTION = click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the page of the day's end to this file, as HTML.",
)


def _observer(around: Surroundings, others: Observer) -> Observer | None:
    file = around.given.get("page")
    if not around.listens and file is None:
        return None
    if file is not None:
        check_output(file)
    from reconciler.features.page.live import LivePage

    readiness = first("findings") if around.listens else None
    known = readiness(around.target, None) if readiness is not None else None
    return LivePage(around.trouble, around.now, known, others=others, file=file, look=around.look)


def _html(reported: Reported) -> str:
    from reconciler.features.page.facts import History
    from reconciler.features.page.html import as_html
    from reconciler.features.page.live import page_facts

    readiness = first("findings")
    known = readiness(reported.target, reported.connection)(reported.settings) if readiness else None

    def panels() -> list[Panel]:
        made = (process.panels(reported, known) for process in processes() if process.panels)
        return [panel for each in made for panel in each]

    passed = Passed(reported.plan, reported.settings)
    return as_html(page_facts(passed, History(), readiness=known, panels=panels))


_FORMS = {"html": ReportForm(_html, "text/html; charset=utf-8")}
PROCESS = Process(options={"demo": (_OPTION,)}, observer=_observer, forms=_FORMS)
