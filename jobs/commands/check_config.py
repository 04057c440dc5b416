"""`reconciler check-config`: every mistake of a settings file at once, or what the settings mean."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from jobs import options
from jobs.runtime.environment import Target, VariablesAsWritten, connected
from jobs.runtime.output import echo, echo_folded
from jobs.runtime.settings_source import (
    SettingsInUse,
    SettingsSource,
    last_good,
    settings_from,
    with_calendars,
)
from reconciler.calendar.values import in_zone
from reconciler.kubernetes.config_maps import read_installed
from reconciler.kubernetes.connection import Connection
from reconciler.model.content import Holder, short_hash
from reconciler.model.errors import ClusterError, SettingsError
from reconciler.model.grants import Account
from reconciler.model.node import Wanted
from reconciler.report.acting import cluster_words
from reconciler.settings.coverage import coverage_of, losses, selects_none
from reconciler.settings.explain import explain_settings
from reconciler.settings.grants import grants_as_manifests, grants_of
from reconciler.settings.in_cluster import nodes_in_words, nodes_to_question
from reconciler.settings.load import calendar_mistakes, parse_content, read_settings
from reconciler.settings.mistakes import KeyWarning
from reconciler.settings.schema import Settings
from reconciler.settings.warnings import warnings


@click.command("check-config")
@click.argument("config", metavar=options.SOURCE_NAME, type=options.SETTINGS_SOURCE)
@click.option("--strict", is_flag=True, help="Exit with 1 if there are warnings.")
@click.option(
    "--permissions",
    is_flag=True,
    help="Print only what the settings need beyond k8s/base: patches of the admission policies, and Roles.",
)
@options.cluster
def command(config: SettingsSource, strict: bool, permissions: bool, target: Target) -> int:
    """Print all mistakes in a settings file, or what it means.

    Warnings, on stderr, are about valid settings that probably do something else than meant, about
    permissions that the cluster does not grant, and about nodes of the cluster that they no longer manage.
    A file is compared with the cluster that --kubeconfig, --context or the variable KUBECONFIG names. Then
    the output also says on how many nodes each selector and condition is, and how many nodes, cases and
    misses there are with the settings in use and with these. If only the variable names it, a cluster that
    can't be read is not a mistake.
    """
    now = datetime.now(UTC)
    settings = settings_from(config, target, now)
    named = not isinstance(config, Path) or target.kubeconfig is not None or target.context is not None
    in_cluster = None
    if named or (not permissions and os.environ.get("KUBECONFIG")):
        in_cluster = _in_cluster(config, settings, target, named=named)
    # The API server may be away where only a file is checked, so calendars in objects are not read then.
    asked = named or in_cluster is not None
    settings, unread = with_calendars(settings, target if asked else None, now)
    _raise_for_calendars(config, settings)
    if permissions:
        echo(grants_as_manifests(grants_of(settings), _account(target, asked=named)), nl=False)
    else:
        for line in settings.origin.meanings:
            echo_folded(line)
        if settings.origin.block:
            echo(f"\nThe same in settings of the reconciler:\n\n{settings.origin.block}")
        echo_folded(explain_settings(settings, str(config)))
    found: list[KeyWarning | str] = [*warnings(settings, now), *_missing(config, settings, target)]
    found += unread if asked else ()
    if in_cluster is not None:
        words, questions, before = in_cluster
        found += questions
        for line in () if permissions else (*words, *_effect(config, settings, before, target)):
            echo_folded(line)
    for warning in found:
        place = f":{warning.line}" if isinstance(warning, KeyWarning) and warning.line else ""
        echo_folded(f"warning: {config}{place}: {warning}", err=True)
    return int(strict and bool(found))


def _account(target: Target, *, asked: bool) -> Account:
    """Return the reconciler's ServiceAccount: that of the cluster if it is `asked` and says it."""
    if asked:
        from jobs.runtime.granted import installed_account

        with suppress(ClusterError), connected(target) as connection:
            return installed_account(connection, target.namespace)
    return Account(target.namespace)


def _missing(config: SettingsSource, settings: Settings, target: Target) -> Iterator[str]:
    """Yield what the settings need and the cluster does not grant; settings in a file have no cluster."""
    grants = grants_of(settings)
    if isinstance(config, Path) or not grants.any:
        return
    from jobs.runtime.granted import missing_grants

    with connected(target) as connection:
        for missing in missing_grants(connection, target.namespace, grants):
            yield f"{missing}; --permissions prints what is needed"


def _in_cluster(
    config: SettingsSource, settings: Settings, target: Target, *, named: bool
) -> tuple[list[str], list[KeyWarning], SettingsInUse | str] | None:
    """Return what the settings mean for the nodes that exist, and what is probably not meant of that.

    That is what they would no longer do, unlike those in use, and what is about none or most nodes. Those in
    use are returned as well, or in words why there are no others to compare with. None if the nodes can't be
    read: then a line says so. A cluster that no option has `named` is asked only if that needs no program
    that signs in.
    """
    from reconciler.kubernetes.access import is_plain
    from reconciler.kubernetes.cluster import Cluster
    from reconciler.kubernetes.cluster_name import name_cluster

    not_compared = f"note: {config}: not compared with the nodes of the cluster"
    if not named and not is_plain(os.environ["KUBECONFIG"]):
        echo_folded(f"{not_compared} that KUBECONFIG names; --context NAME does that", err=True)
        return None
    try:
        with connected(target) as connection:
            wanted = Wanted(settings.condition_types(), settings.keys.prefix, labels=None)
            name_cluster(connection, settings.cluster)
            nodes = Cluster(connection, namespace=target.namespace).nodes(wanted)
            before = _in_use(connection, target.namespace, settings)
    except ClusterError as error:
        echo_folded(f"{not_compared}: {error}", err=True)
        return None
    counted = [(node.labels, 1) for node in nodes]
    covered = coverage_of(settings, counted)
    known = before.settings if isinstance(before, SettingsInUse) else None
    lost = selects_none(covered) if known is None else losses(coverage_of(known, counted), covered)
    questions = {each.key: each for each in (*nodes_to_question(settings, nodes), *lost)}
    where = cluster_words(connection.cluster, connection.origin.context)
    words = ["", f"In the {where}", *nodes_in_words(settings, nodes)]
    return words, [*questions.values()], before


def _in_use(connection: Connection, namespace: str, checked: Settings) -> SettingsInUse | str:
    """Return the settings that these would replace, or in words why there are none to compare with.

    They are the installed ones. If these are refused, or are checked themselves, they are the last good ones.
    """
    hashed = checked.version.hash if checked.version is not None else ""
    why = in_use = "these are the settings in use"
    try:
        installed = read_installed(connection, namespace)
        if isinstance(installed, str):
            why = installed
        elif short_hash(installed.content) != hashed:
            name, variables = str(installed), VariablesAsWritten(os.environ)
            return SettingsInUse(parse_content(installed.content, name, None, variables), name)
    except SettingsError as error:
        why = error.mistakes[0]
    used = last_good(connection, namespace, None)
    if isinstance(used, str):
        return f"{why}; {used}" if used else why
    version = used.settings.version
    return in_use if version is not None and version.hash == hashed else used


def _effect(
    config: SettingsSource, settings: Settings, before: SettingsInUse | str, target: Target
) -> Iterator[str]:
    """Yield how many nodes, cases and misses there are with the settings in use, and with those checked."""
    from jobs.runtime.outside import compared

    known = None if isinstance(before, str) else before.settings
    try:
        with connected(target) as connection:
            comparison = compared(connection, target, known, settings)
    except ClusterError as error:
        echo_folded(f"note: {config}: cases and misses are not compared: {error}", err=True)
        return
    if isinstance(before, str):
        yield f"With these settings (not compared: {before})"
    else:
        yield in_zone(f"With {before.source}, and then with these settings", settings.time_zone)
    yield from (f"  {line}" for line in comparison.lines)


def _raise_for_calendars(config: SettingsSource, settings: Settings) -> None:
    """Raise SettingsError if the content of a calendar in a file is wrong."""
    files = {place.name for place in settings.calendar_places() if place.holder is Holder.FILE}
    # What is kept of it makes the content of a file that is checked no better.
    checked = isinstance(config, Path)
    wrong = {
        name: why
        for name, one in settings.calendar_texts.items()
        if name in files and (why := one.unread or (one.note if checked else ""))
    }
    if wrong:
        data = read_settings(config) if isinstance(config, Path) else b""
        raise calendar_mistakes(data, str(config), settings, wrong)
