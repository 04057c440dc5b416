"""`reconciler history`: sums up the cases that have ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click

from jobs import options
from jobs.runtime.by_hand import whole_name
from jobs.runtime.case_lines import MOST_CASES, CaseLines, read_case_lines
from jobs.runtime.environment import Target
from jobs.runtime.output import echo, echo_document, print_text
from jobs.runtime.process import Viewed, options_of_features, view_of
from jobs.runtime.settings_source import SettingsSource
from reconciler.features.history.summary import as_text, summed_up
from reconciler.features.history.tables import case_document, cases_as_csv, cases_as_text
from reconciler.model.limits import count_of

BROKEN = 1
"""The exit code if a line could not be read."""

_TOO_MANY = f"more than {MOST_CASES} cases are too many to sum up at once; name fewer files, or use --since"


@click.command("history")
@click.argument("files", metavar="[FILE]…", nargs=-1, type=click.Path(allow_dash=True, path_type=Path))
@click.option("--cases", "each", is_flag=True, help="A row for each case, instead of their sum.")
@click.option("--node", metavar="NODE", help="Only cases of this node; the end of its name is enough.")
@click.option("--since", type=options.DURATION, help="Only cases that ended in this time, such as 30d.")
@options_of_features("history")
@options.optional_config
@options.cluster
@options.output_as("csv")
def history(
    files: tuple[Path, ...],
    each: bool,
    node: str | None,
    since: timedelta | None,
    given: Mapping[str, Any],
    config: SettingsSource | None,
    target: Target,
    output: str,
) -> int:
    """Sum up the cases that have ended, from --history or logs of serve.

    FILE - is stdin. A line that can't be read is named on stderr, and the others count. At most 100,000 cases
    are summed up, and a line has at most 64 KiB. `-o csv` is for tables, such as that of --cases.
    """
    view = view_of(given)
    if view is not None:
        if each:
            raise click.UsageError("--cases is a view of its own; leave one of them out")
        return view(Viewed(files, node, since, output, target, config))
    if not files:
        raise click.UsageError("name a FILE of --history, or a log of serve")
    if output == "csv" and not each:
        raise click.UsageError("-o csv is for tables; add --cases")
    now = datetime.now(UTC)
    begin = now - since if since is not None else None
    lines = CaseLines(begin)
    for path in files:
        read_case_lines(path, lines, _TOO_MANY)
    for mistake in lines.mistakes:
        echo(str(mistake), err=True)
    unnamed = lines.counts["broken"] - len(lines.mistakes)
    if unnamed:
        echo(f"and {count_of(unnamed, 'more line')} that can't be read", err=True)
    cases = lines.cases
    if node is not None:
        node = whole_name(node, {case.place.node for case in cases})
        cases = tuple(case for case in cases if case.place.node == node)
        if not cases:
            echo(f"no case of node {node} is in the history", err=True)
    summary = summed_up(cases, begin, now, lines.counts, lines.mistakes)
    if output == "csv":
        print_text(cases_as_csv(summary), nl=False)
    elif each:
        echo_document(case_document(summary, node), output, partial(cases_as_text, summary))
    else:
        echo_document(summary.document, output, partial(as_text, summary))
    return BROKEN if lines.counts["broken"] else 0
