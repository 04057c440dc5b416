"""The dry-run report: what a pass would do and why, as text, JSON or Markdown."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from jobs import options
from jobs.runtime.environment import Target
from jobs.runtime.outside import Wiring
from jobs.runtime.terminal import echo
from reconciler.clients.kubernetes.connection import Connection
from reconciler.report.document import as_json, to_document
from reconciler.report.markdown import as_markdown
from reconciler.report.text import as_text
from reconciler.run import rehearse
from reconciler.settings.load import load_settings

_FORMS = {"text": as_text, "json": as_json, "markdown": as_markdown}


@click.command("report")
@options.config
@options.cluster
@click.option(
    "--format",
    "form",
    type=click.Choice(tuple(_FORMS)),
    default="text",
    show_default=True,
    help="The format of the report.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report to this file.  [default: stdout]",
)
def command(config: Path, target: Target, form: str, out: Path | None) -> int:
    """Print what a pass would do and why, with a preview of drains. It only reads the cluster."""
    return report(config, target, form=form, out=out)


def report(config: Path, target: Target, *, form: str, out: Path | None) -> int:
    """Write the report to `out`, or to stdout; the cluster is only read."""
    settings = load_settings(config, datetime.now(UTC))
    connection = Connection(target.kubeconfig, target.context)
    try:
        outside = Wiring(connection, target).to_read(settings)
        plan = rehearse(outside, settings, datetime.now(UTC), with_preview=True)
    finally:
        connection.close()
    text = _FORMS[form](to_document(plan, rehearsed=True))
    if out is None:
        echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
    return 0
