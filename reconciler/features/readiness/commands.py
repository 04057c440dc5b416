"""`reconciler readiness`: what would keep each node from a drain now, by workload."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import click

from jobs import options
from jobs.runtime.environment import Target, connected
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, echo_document
from jobs.runtime.outside import cluster_of, reconciler_of
from jobs.runtime.settings_source import SettingsSource, settings_in_use
from reconciler.features.readiness import dry_evictions
from reconciler.features.readiness.judging import readiness_of
from reconciler.features.readiness.report import as_markdown, as_text, to_document
from reconciler.kubernetes.workloads import Volumes
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.report.acting import reconciler_value


@click.command("readiness")
@options.optional_config
@options.cluster
@options.selector
@options.namespace
@options.output_as("markdown")
@click.option(
    "--strict", is_flag=True, help="Exit with 1 if something keeps a drain from its end, or can't be read."
)
@click.option(
    "--ask-webhooks",
    is_flag=True,
    help="Also ask admission webhooks, by evictions that the API server only rehearses.",
)
def readiness(
    config: SettingsSource | None,
    target: Target,
    selector: LabelSelector | None,
    namespace: str | None,
    output: str,
    strict: bool,
    ask_webhooks: bool,
) -> int:
    """Print what keeps nodes from a drain, by workload.

    It changes nothing in the cluster.
    """
    policy = settings_in_use(config, target, datetime.now(UTC))
    with connected(target) as connection:
        reconciler = reconciler_of(connection, target, policy.settings)
        answer = readiness_of(
            cluster_of(connection, target),
            Volumes(connection),
            policy.settings,
            connection.time.now,
            selector or EVERYTHING,
            partial(dry_evictions.ask_webhooks, connection) if ask_webhooks else None,
        )
    if namespace is not None:
        answer = answer.of_namespace(namespace)
    document = policy.named_in({**to_document(answer), "reconciler": reconciler_value(reconciler)})
    echo_lines(policy.first_lines(output, reconciler, answer.now))
    if output == "markdown":
        echo(as_markdown(answer), nl=False)
    else:
        echo_document(document, output, partial(as_text, answer))
    return int(strict and (answer.stops or answer.unsure))
