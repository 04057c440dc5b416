"""The dry-run report: what a pass would do and why, as text, JSON, YAML, Markdown or a page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.by_hand import check_nodes
from jobs.runtime.destinations import MEDIA_TYPES, STDOUT, TEXT, Destination, check, deliver
from jobs.runtime.environment import Target, connected
from jobs.runtime.looks import Shown, show
from jobs.runtime.output import echo, in_form, width
from jobs.runtime.outside import examined
from jobs.runtime.process import Observers, Passed, Reported, Surroundings, options_of_features, processes
from jobs.runtime.settings_source import SettingsInUse, SettingsSource, settings_to_show
from reconciler.model.plan import Plan
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.report.document import Limit, Only, limited, to_report
from reconciler.report.of_namespace import pods_of
from reconciler.report.table import as_table
from reconciler.report.text import as_markdown, as_text

FORMS = {name: form for process in processes() for name, form in process.forms.items()}
"""The forms of features, which show the whole fleet."""


class _ReportOutput(Struct, frozen=True):
    """In which form the report is written, where to (nowhere: stdout), and how often (None: once)."""

    output: str
    out: tuple[Destination, ...]
    every: timedelta | None


class _ReportContent(Struct, frozen=True):
    """What a report is about: the plan, its policy, which rows are shown, and the text in a form of FORMS."""

    plan: Plan
    policy: SettingsInUse
    limit: Limit
    text: str


@click.command("report")
@options.nodes
@options.selector
@options.namespace
@click.option(
    "--only",
    type=click.Choice([one.value for one in Only]),
    help="Print only rows of such nodes. waits: for a time or a place; held: by a person; blocked: by a pod, "
    "a budget or a webhook; planned: a drain is required and has not begun.",
)
@options.optional_config
@options.cluster
@options.as_one(
    "way",
    _ReportOutput,
    options.output_as("markdown", *FORMS),
    click.option(
        "--out",
        type=options.DESTINATION,
        metavar="FILE|configmap/NAMESPACE/NAME|URL",
        multiple=True,
        help="Write the report there: to a file, into the key `report` of a ConfigMap that exists, or by "
        "POST. May be repeated; - is stdout.  [default: stdout]",
    ),
    options.watch,
)
@options_of_features("report")
def command(
    nodes: tuple[str, ...],
    selector: LabelSelector | None,
    namespace: str | None,
    only: str | None,
    config: SettingsSource | None,
    target: Target,
    way: _ReportOutput,
    given: Mapping[str, Any],
) -> int:
    """Print what a pass would do and why. It only reads the cluster.

    It has one line a node, the most urgent first. With NODES, or with -o wide, it has everything that is
    known of each. It writes nothing there but a ConfigMap that --out names. NODES and --namespace limit the
    rows, not the counts.
    """
    if nodes and selector is not None:
        raise click.UsageError("name the nodes, or give --selector")
    limit = Limit(nodes, Only(only) if only else None, selector)
    if way.output in FORMS and (limit != Limit() or namespace is not None):
        raise click.UsageError(
            "a page shows the whole fleet; leave out NODES, --selector, --namespace and --only"
        )
    see = partial(_seen, config, target, limit, namespace, way, given)
    if way.every is not None:
        others = [f"-o {way.output}"] * (way.output in FORMS) + ["--out"] * bool(way.out)
        others += [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
        if others:
            raise click.UsageError(f"--watch prints to stdout; leave out {', '.join(others)}")
        return show(lambda: _made(see(), way), way.every)
    check(way.out)
    seen = see()
    shown = Shown(seen.text, way.output, {}) if way.output in FORMS else _made(seen, way)
    if not way.out or STDOUT in way.out:
        shown.echo()
    first = "".join(f"{line.text}\n" for line in shown.first if not line.beside)
    form = FORMS.get(way.output)
    media_type = form.media_type if form is not None else MEDIA_TYPES.get(way.output, TEXT)
    deliver(way.out, f"{first}{shown.text}", media_type, target)
    return seen.policy.exit_code


def _seen(
    config: SettingsSource | None,
    target: Target,
    limit: Limit,
    namespace: str | None,
    way: _ReportOutput,
    given: Mapping[str, Any],
) -> _ReportContent:
    """Look at the cluster, and let features observe that.

    With a namespace, only nodes that run its pods have rows, and these pods follow. Raises NotFound for a
    name that no node has, for a selector that no node matches, and for a namespace without pods.
    """
    policy = settings_to_show(config, target, datetime.now(UTC))
    settings, form = policy.settings, FORMS.get(way.output)

    def warn(message: str) -> None:
        echo(f"warning: {message}", err=True)

    around = Surroundings("report", given, warn, target)
    with Observers().add(around) as observers, connected(target) as connection:
        examination = observers.timed(
            lambda: examined(connection, target, settings, with_preview=True, namespace=namespace)
        )
        plan = examination.plan
        observers.after(Passed(plan, settings))
        reported = Reported(plan, settings, connection, target)
        notes = [note for process in processes() if process.notes for note in process.notes(reported)]
        # Such a form has no first line.
        first = (policy.instead,) if form is not None and policy.instead else ()
        plan = replace(plan, notes=(*first, *plan.notes, *notes))
        text = form.text_of(replace(reported, plan=plan)) if form is not None else ""
    check_nodes(limit.names, {node.name for node in examination.snapshot.nodes})
    limit = limit.on(examination.snapshot.nodes)
    if namespace is not None:
        events = assess(examination.snapshot, examination.plan.now)
        limit = replace(limit, pods=pods_of(examination, events, namespace, settings))
    return _ReportContent(plan, policy, limit, text)


def _made(seen: _ReportContent, way: _ReportOutput) -> Shown:
    """Return the report in the form that is asked for, which is no page."""
    made = limited(to_report(seen.plan, rehearsed=True), seen.limit)
    document = seen.policy.named_in(made.document)
    first = seen.policy.first_lines(way.output, seen.plan.reconciler, seen.plan.now)
    if way.output == "markdown":
        return Shown(as_markdown(made), way.output, document, first)
    columns = None if way.out else width(way.output)
    if way.output == "text" and not seen.limit.names:
        lines = as_table(made, columns)
        text = "".join(f"{line.text}\n" for line in lines) if way.out else lines
        return Shown(text, way.output, document, first)
    form = partial(as_text, made, wide=way.output == "wide")
    return Shown(in_form(document, way.output, form, columns), way.output, document, first)
