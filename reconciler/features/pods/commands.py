"""`reconciler pods`: which pods were moved, or are to be moved, when and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from jobs import options
from jobs.runtime.environment import Target, connected
from jobs.runtime.event_lines import named_together
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, echo_document
from jobs.runtime.outside import examined
from jobs.runtime.settings_source import SettingsInUse, SettingsSource, settings_to_show
from reconciler.features.pods import PUBLISHED
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.features.pods.lines import PodLines
from reconciler.features.pods.moved import MovedPod
from reconciler.features.pods.published import Published
from reconciler.features.pods.publisher import read_published
from reconciler.features.pods.report import PodsReport, as_text
from reconciler.features.pods.tonight import TonightReport, tonight
from reconciler.features.pods.tonight import as_text as tonight_as_text
from reconciler.kubernetes.config_maps import unreadable
from reconciler.kubernetes.connection import FORBIDDEN
from reconciler.kubernetes.kept_lines import KeptInCluster, KeptLines
from reconciler.model.errors import ClusterError, Forbidden, Rejected, Unauthorized
from reconciler.model.limits import count_of, is_object_name, quoted
from reconciler.model.moments import shifted, to_text
from reconciler.report.lines import Line

SINCE = timedelta(hours=24)
"""How far back the command looks by default."""

BROKEN = 1
"""The exit code if a line could not be read."""


@click.command("pods")
@options.namespace
@click.option(
    "-A", "--all-namespaces", "everywhere", is_flag=True, help="The pods of all namespaces, as without -n."
)
@click.option(
    "--tonight",
    "ahead",
    is_flag=True,
    help="The pods that drains are to move until 8:00 of the next day, in the time zone of the settings.",
)
@click.option(
    "--since",
    type=options.DURATION,
    help="Only pods that were moved in this time, such as 2d.  [default: 24h]",
)
@click.option(
    "--history",
    "files",
    multiple=True,
    type=click.Path(allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Read a file of --history, or a log of serve, instead of the cluster; - is stdin. May be repeated.",
)
@options.optional_config
@options.cluster
@options.output
def pods(
    namespace: str | None,
    everywhere: bool,
    ahead: bool,
    since: timedelta | None,
    files: tuple[Path, ...],
    config: SettingsSource | None,
    target: Target,
    output: str,
) -> int:
    """Print which pods were moved: from where, when, and why.

    It reads what serve and sweep keep in the cluster, or the lines of files. With --tonight, it prints which
    pods are to be moved, and what keeps those that can't move: a look at the cluster, as `plan`. Where you
    may not read that, -n reads what serve publishes in the namespace (`pods.publish`).
    """
    if everywhere and namespace is not None:
        raise click.UsageError("-n names one namespace, and -A means all of them; leave one of them out")
    if namespace is not None and not is_object_name(namespace):
        raise click.BadParameter(f"{quoted(namespace)} is no name of a namespace", param_hint="-n")
    if ahead and (files or since is not None):
        back = "--history" if files else "--since"
        raise click.UsageError(f"--tonight looks ahead, and {back} looks back; leave one of them out")
    now = datetime.now(UTC)
    if ahead:
        return _tonight(namespace, settings_to_show(config, target, now), now, target, output)
    begin = shifted(now, -(since if since is not None else SINCE))
    if files:
        lines = PodLines(begin, namespace)
        for path in files:
            lines.read(path)
        if lines.broken:
            echo(f"{count_of(lines.broken, 'line')} about pods can't be read", err=True)
        source = named_together(files)
        report = PodsReport(namespace, begin, now, source, lines.pods, None, lines.left_out)
        zone = ZoneInfo("UTC") if config is None else settings_to_show(config, target, now).settings.time_zone
        echo_document(report.document, output, partial(as_text, report, zone))
        return BROKEN if lines.broken else 0
    policy = settings_to_show(config, target, now)
    # Settings that may not be read say nothing about what is published.
    first: tuple[Line, ...] = ()
    try:
        source, kept = _kept(target)
    except Forbidden as error:
        if namespace is None:
            raise
        published, source = _published(target, namespace, error)
        kept, zone = KeptLines(published.whole_from, published.moved), published.zone
    else:
        zone, first = policy.settings.time_zone, policy.first_lines(output)
    if kept is None:
        why = "no pod was moved yet, `pods.keep` is 0s, or the reconciler is in another namespace"
        echo(f"{source} does not exist: {why}", err=True)
    known = kept.lines if kept is not None else ()
    chosen = tuple(
        pod for pod in known if pod.at >= begin and (namespace is None or pod.namespace == namespace)
    )
    report = PodsReport(namespace, begin, now, source, chosen, kept.whole_from if kept is not None else None)
    echo_lines(first)
    echo_document(policy.named_in(report.document), output, partial(as_text, report, zone))
    return policy.exit_code


def _tonight(namespace: str | None, policy: SettingsInUse, now: datetime, target: Target, output: str) -> int:
    settings = policy.settings
    try:
        with connected(target) as connection:
            examination = examined(
                connection, target, settings, with_preview=True, also_pods=True, namespace=namespace
            )
        report, zone = tonight(examination, namespace, settings), settings.time_zone
        first = policy.first_lines(output, examination.plan.reconciler, examination.plan.now)
    except (Forbidden, Unauthorized) as error:
        if namespace is None or error.status != FORBIDDEN:
            raise
        published, source = _published(target, namespace, error)
        if published.until < now:
            over = to_text(published.until)
            why = f"{source} is about a night that ended at {over}: serve does not write it now"
            raise Rejected(f"{error}. {why}") from error
        zone, first, instead = published.zone, (), (f"{source} says this: you may not read the nodes",)
        report = TonightReport(
            namespace,
            now,
            published.until,
            published.coming,
            left_out=published.left_out,
            source=source,
            unseen=instead,
        )
    echo_lines(first)
    echo_document(policy.named_in(report.document), output, partial(tonight_as_text, report, zone))
    return policy.exit_code


def _kept(target: Target) -> tuple[str, KeptLines[MovedPod] | None]:
    """Return what the cluster keeps, and what that is called; None if nothing is. Raises ClusterError."""
    with connected(target) as connection:
        place = KeptInCluster(MOVED_PODS, connection, target.namespace)
        return f"the ConfigMap {place.name}", place.read_for_person()


def _published(target: Target, namespace: str, refused: ClusterError) -> tuple[Published, str]:
    """Return what is published in a namespace, and what that is called.

    Raises the refusal for which it is asked if there is nothing, or if it may not be read either.
    """
    source = f"the ConfigMap {namespace}/{PUBLISHED}"
    with connected(target) as connection:
        try:
            published = read_published(connection, namespace)
        except ValueError as error:
            then = "serve writes it again"
            raise Rejected(unreadable(namespace, PUBLISHED, error, then)) from error
        except ClusterError as error:
            echo(f"{source} can't be read either: {error.because}", err=True)
            raise refused from error
    if published is None:
        why = "`pods.publish` of the settings is off, or no pod of the namespace was moved or is to be moved"
        echo(f"{source} does not exist: {why}", err=True)
        raise refused
    return published, source
