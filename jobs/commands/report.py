"""The dry-run report: what a pass would do and why, as text, JSON, YAML, Markdown or a page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.by_hand import check_nodes
from jobs.runtime.clock import ServerClock
from jobs.runtime.environment import Target
from jobs.runtime.looks import Shown, print_again_and_again
from jobs.runtime.metrics_output import MetricsOfRun, MetricsOutput
from jobs.runtime.output import check_output, echo, echo_form, in_form, width, write_output
from jobs.runtime.outside import Wiring
from jobs.runtime.readiness import for_page, read_readiness
from jobs.runtime.settings_source import SettingsInUse, SettingsSource, settings_in_use
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import ClusterError
from reconciler.model.plan import Plan
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.report.document import Limit, Only, limited, to_report
from reconciler.report.text import as_markdown, as_text
from reconciler.report.values import Document
from reconciler.run import examine
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.model.readiness import KnownReadiness

HTML = "html"


class _Way(Struct, frozen=True):
    """In which form the report is written, where to (None: stdout), and how often (None: once)."""

    output: str
    out: Path | None
    metrics: MetricsOutput
    every: timedelta | None


class _Seen(Struct, frozen=True):
    """What a report is about: the plan, its policy, which rows are shown, and for a page the readiness."""

    plan: Plan
    policy: SettingsInUse
    limit: Limit
    readiness: KnownReadiness | None


@click.command("report")
@options.nodes
@options.selector
@click.option(
    "--only",
    type=click.Choice([one.value for one in Only]),
    help="Print only rows of such nodes. planned: a drain is required and has not begun.",
)
@options.optional_config
@options.cluster
@options.as_one(
    "way",
    _Way,
    options.output_as("markdown", HTML, old_name="--format"),
    click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the report to this file, whole or not at all. Its folder must exist.  [default: stdout]",
    ),
    options.as_one(
        "metrics", MetricsOutput, options.metrics_file, options.metrics_push, options.metrics_otlp
    ),
    options.watch,
)
def command(
    nodes: tuple[str, ...],
    selector: LabelSelector | None,
    only: str | None,
    config: SettingsSource | None,
    target: Target,
    way: _Way,
) -> int:
    """Print what a pass would do and why, with a preview of drains. It only reads the cluster.

    NODES limit the rows, not the counts.
    """
    if nodes and selector is not None:
        raise click.UsageError("name the nodes, or give --selector")
    return report(config, target, Limit(nodes, Only(only) if only else None, selector), way)


def report(config: SettingsSource | None, target: Target, limit: Limit, way: _Way) -> int:
    """Write the report with the rows of `limit` to a file, or to stdout; the cluster is only read.

    Without a source, the settings are those of the cluster. Raises NotFound for a name that no node has, and
    for a selector that no node matches.
    """
    if way.output == HTML and limit != Limit():
        raise click.UsageError("a page shows the whole fleet; leave out NODES, --selector and --only")
    if way.every is not None:
        if way.output == HTML or way.out is not None or way.metrics.wanted:
            raise click.UsageError("--watch prints to stdout; leave out --out, -o html and metrics")

        def look() -> Shown:
            document, text = _made(_seen(config, target, limit, way), way)
            return Shown(text, way.output, document)

        return print_again_and_again(look, way.every)
    if way.out is not None:
        check_output(way.out)
    seen = _seen(config, target, limit, way)
    text = _page(seen) if way.output == HTML else _made(seen, way)[1]
    if way.out is not None:
        write_output(way.out, text)
    else:
        echo_form(text, way.output)
    return 0


def _seen(config: SettingsSource | None, target: Target, limit: Limit, way: _Way) -> _Seen:
    """Look at the cluster, and write metrics about that if they are asked for."""
    policy = settings_in_use(config, target, datetime.now(UTC))
    settings = policy.settings
    with MetricsOfRun(way.metrics, lambda message: echo(f"warning: {message}", err=True)) as measured:
        connection = Connection(target.kubeconfig, target.context)
        try:
            outside, clock = Wiring(connection, target).to_read(settings), ServerClock(connection)
            found = measured.timed(lambda: examine(outside, settings, clock.now(), with_preview=True))
            measured.rehearsed(found.plan)
            notes = _notices(connection, target, settings)
            readiness = None
            if way.output == HTML:
                readiness = for_page(partial(read_readiness, connection, target, settings))
        finally:
            connection.close()
    check_nodes(limit.names, {node.name for node in found.snapshot.nodes})
    # A page has no first line.
    first = policy.first_line() if way.output == HTML else ()
    plan = replace(found.plan, notes=(*first, *found.plan.notes, *notes))
    return _Seen(plan, policy, limit.on(found.snapshot.nodes), readiness)


def _made(seen: _Seen, way: _Way) -> tuple[Document, str]:
    """Return the report as a document, and as a text in the form that is asked for, which is no page."""
    made = limited(to_report(seen.plan, rehearsed=True), seen.limit)
    document = seen.policy.named_in(made.document)
    first = "".join(f"{line}\n" for line in seen.policy.first_line(way.output))
    if way.output == "markdown":
        return document, first + as_markdown(made)
    columns = width(way.output) if way.out is None else None
    form = partial(as_text, made, wide=way.output == "wide")
    return document, first + in_form(document, way.output, form, columns)


def _page(seen: _Seen) -> str:
    from jobs.runtime.live_page import Passed, page_facts
    from reconciler.features.page.cases import History
    from reconciler.features.page.html import as_html

    return as_html(page_facts(Passed(seen.plan, seen.policy.settings), History(), readiness=seen.readiness))


def _notices(connection: Connection, target: Target, settings: Settings) -> tuple[str, ...]:
    """Return the notes about notices that can't be sent, as the process that sends them has saved them."""
    from reconciler.features.notices.settings import NOTIFY

    instances = settings.profiles.instances.notify
    if not NOTIFY.of(settings) and not instances:
        return ()
    from reconciler.features.notices.memory import failing, from_text
    from reconciler.features.notices.stored_memory import NoticeMemory

    try:
        known = from_text(NoticeMemory(connection, target.namespace, guard=lambda: None).load())
    except (ClusterError, ValueError) as error:
        why = f"needs {error.needs}" if isinstance(error, ClusterError) and error.needs else error
        return (f"notices: whether they can be sent is not known: {why}",)
    return failing(known, NOTIFY.of(settings), instances)
