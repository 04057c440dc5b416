"""`reconciler history`: sums up the cases that have ended, or lists them, or what people did."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click

from jobs import options
from jobs.runtime.by_hand import whole_name
from jobs.runtime.case_lines import MOST_CASES
from jobs.runtime.environment import Target
from jobs.runtime.output import echo, echo_document, print_text
from jobs.runtime.process import Viewed, options_of_features, view_of
from jobs.runtime.settings_source import SettingsSource
from reconciler.features.history.budgets import as_csv as budgets_as_csv
from reconciler.features.history.budgets import as_text as budgets_as_text
from reconciler.features.history.budgets import as_values, budget_times
from reconciler.features.history.lines import Read, of_cluster, of_files
from reconciler.features.history.summary import as_text, summed_up
from reconciler.features.history.tables import (
    budget_document,
    case_document,
    cases_as_csv,
    cases_as_text,
    deed_document,
    deeds_as_csv,
    deeds_as_text,
)
from reconciler.model.limits import count_of
from reconciler.model.moments import shifted, to_text

BROKEN = 1
"""The exit code if a line could not be read."""

_TOO_MANY = f"more than {MOST_CASES} cases are too many to sum up at once; name fewer files, or use --since"


@click.command("history")
@click.argument("files", metavar="[FILE]…", nargs=-1, type=click.Path(allow_dash=True, path_type=Path))
@click.option("--cases", "each", is_flag=True, help="A row for each case, instead of their sum.")
@click.option("--audit", is_flag=True, help="A row for each thing that a person did.")
@click.option("--budgets", is_flag=True, help="A row for each PodDisruptionBudget that held a drain.")
@click.option("--node", metavar="NODE", help="Only of this node; the end of its name is enough.")
@click.option("--since", type=options.DURATION, help="Only what happened in this time, such as 30d.")
@options_of_features("history")
@options.optional_config
@options.cluster
@options.output_as("csv")
def history(
    files: tuple[Path, ...],
    each: bool,
    audit: bool,
    budgets: bool,
    node: str | None,
    since: timedelta | None,
    given: Mapping[str, Any],
    config: SettingsSource | None,
    target: Target,
    output: str,
) -> int:
    """Sum up the cases that have ended, or list what people did.

    It reads what serve and sweep keep in the cluster, or files of --history or logs of serve; FILE - is
    stdin. A line of a file that can't be read is named on stderr, and the others count. At most 100,000 cases
    are summed up, and a line has at most 64 KiB. `-o csv` is for tables, such as that of --cases.
    """
    tables = sum((each, audit, budgets))
    view = view_of(given)
    if view is not None:
        if tables:
            raise click.UsageError("--cases, --audit and --budgets are views of their own; leave them out")
        return view(Viewed(files, node, since, output, target, config))
    if tables > 1:
        raise click.UsageError(
            "--cases, --audit and --budgets are tables of their own; leave all but one out"
        )
    if output == "csv" and not tables:
        raise click.UsageError("-o csv is for tables; add --cases, --audit or --budgets")
    now = datetime.now(UTC)
    begin = shifted(now, -since) if since is not None else None
    read = of_files(files, begin, _TOO_MANY) if files else of_cluster(target, begin)
    _echo_missing(read, begin)
    cases, deeds = read.cases, read.deeds
    if node is not None:
        # What many nodes share names none.
        names = {deed.node for deed in deeds} if audit else {case.place.node for case in cases}
        node = whole_name(node, names - {""})
        cases = tuple(case for case in cases if case.place.node == node)
        deeds = tuple(deed for deed in deeds if deed.node == node)
        if audit and not deeds:
            echo(f"nothing that a person did on node {node} is in the history", err=True)
        elif not audit and not cases:
            echo(f"no case of node {node} is in the history", err=True)
    summary = summed_up(cases, begin, now, read.counts, read.broken)
    document, text = {**summary.document, **read.document}, partial(as_text, summary)
    if audit:
        document, text = deed_document(summary, deeds, node, read.document), partial(deeds_as_text, deeds)
    elif budgets:
        held = budget_times(summary.cases)
        document = budget_document(summary, as_values(held), node, read.document)
        text = partial(budgets_as_text, held)
    elif each:
        document, text = case_document(summary, node, read.document), partial(cases_as_text, summary)
    if output == "csv":
        cases_in_csv = budgets_as_csv(budget_times(summary.cases)) if budgets else cases_as_csv(summary)
        print_text(deeds_as_csv(deeds) if audit else cases_in_csv, nl=False)
    else:
        echo_document(document, output, text)
    return BROKEN if read.counts["broken"] else 0


def _echo_missing(read: Read, begin: datetime | None) -> None:
    """Print on stderr what is not in the answer."""
    for mistake in read.broken:
        echo(str(mistake), err=True)
    unnamed = read.counts["broken"] - len(read.broken)
    if unnamed:
        echo(f"and {count_of(unnamed, 'more line')} that can't be read", err=True)
    if not read.exists:
        why = "nothing has happened yet, `audit.keep` is 0s, or the reconciler is in another namespace"
        echo(f"{read.source} does not exist: {why}", err=True)
    elif read.whole_from is not None and (begin is None or read.whole_from > begin):
        whole = to_text(read.whole_from)
        echo(f"{read.source} is complete from {whole} on; files of --history have what was before", err=True)
