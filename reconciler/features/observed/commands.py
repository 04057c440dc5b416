"""`reconciler history --observed`: what would have been done, and the way to Enforce."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

from jobs.runtime.by_hand import whole_name
from jobs.runtime.environment import connected
from jobs.runtime.event_lines import named_together
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, echo_document, print_text
from jobs.runtime.process import Reported, Viewed, first
from jobs.runtime.settings_source import settings_to_show
from reconciler.features.observed.cases import OBSERVED_CASES, Kept, Stretch
from reconciler.features.observed.lines import read_files
from reconciler.features.observed.summary import TITLE, as_csv, as_text, chosen, panel, summed_up
from reconciler.features.observed.way import with_steps
from reconciler.kubernetes.kept_lines import KeptInCluster
from reconciler.model.errors import ClusterError
from reconciler.model.findings import KnownFindings
from reconciler.model.limits import count_of
from reconciler.model.moments import shifted
from reconciler.model.panels import Panel
from reconciler.settings.schema import Mode

BROKEN = 1
"""The exit code if a line could not be read."""


def show(asked: Viewed) -> int:
    """Print what would have been done; return the exit code."""
    now = datetime.now(UTC)
    since = shifted(now, -asked.since) if asked.since is not None else None
    if asked.files:
        cases, broken = read_files(asked.files)
        if broken:
            echo(f"{count_of(broken, 'line')} about cases can't be read", err=True)
        node = whole_name(asked.node, {case.node for case in cases}) if asked.node is not None else None
        source = named_together(asked.files)
        total = summed_up(chosen(cases, since, node), now, source)
        if asked.output == "csv":
            print_text(as_csv(total), nl=False)
        else:
            echo_document(total.document, asked.output, partial(as_text, total, ZoneInfo("UTC")))
        return BROKEN if broken else 0
    policy = settings_to_show(asked.config, asked.target, now)
    settings = policy.settings
    with connected(asked.target) as connection:
        place = KeptInCluster(OBSERVED_CASES, connection, asked.target.namespace)
        source = f"the ConfigMap {place.name}"
        kept = place.read_for_person()
        readiness = first("findings")
        known = readiness(asked.target, connection)(settings) if readiness is not None else None
    lines: tuple[Kept, ...] = kept.lines if kept is not None else ()
    names = {line.node for line in lines if not isinstance(line, Stretch)}
    node = whole_name(asked.node, names) if asked.node is not None else None
    if kept is None:
        why = "no pass in mode Observe was made by `serve` or `sweep`, `observed.keep` is 0s"
        echo(f"{source} does not exist: {why}, or the reconciler is in another namespace", err=True)
    total = summed_up(
        chosen(lines, since, node),
        now,
        source,
        observes=settings.mode is Mode.OBSERVE,
        whole_from=kept.whole_from if kept is not None else None,
    )
    total = with_steps(total, settings, known)
    echo_lines(policy.first_lines(asked.output))
    document = policy.named_in(total.document)
    if asked.output == "csv":
        print_text(as_csv(total), nl=False)
    else:
        echo_document(document, asked.output, partial(as_text, total, settings.time_zone))
    return policy.exit_code


def panels(reported: Reported, findings: KnownFindings | None) -> Sequence[Panel]:
    """Return the sum of what the cluster keeps, while the mode is Observe, for a page.

    `findings` are known to keep nodes from a drain.
    """
    settings = reported.settings
    if settings.mode is not Mode.OBSERVE:
        return ()
    place = KeptInCluster(OBSERVED_CASES, reported.connection, reported.target.namespace)
    try:
        kept = place.read_for_person()
    except ClusterError as error:
        return (Panel(TITLE, f"It can't be read: {error.because}."),)
    if kept is None:
        return ()
    total = summed_up(kept.lines, reported.plan.now, "", observes=True, whole_from=kept.whole_from)
    return (panel(with_steps(total, settings, findings)),)
