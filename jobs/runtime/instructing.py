"""Writes instructions of a person on nodes: what `approve`, `hold`, `resume` and `defer` have in common."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from jobs import options
from jobs.runtime.environment import Target
from jobs.runtime.events_by_hand import EventsByHand
from jobs.runtime.node_names import check_nodes
from jobs.runtime.person import person
from jobs.runtime.settings_source import SettingsSource, settings_from
from jobs.runtime.terminal import echo, width
from reconciler.clients.kubernetes.cluster import Cluster
from reconciler.clients.kubernetes.connection import Connection
from reconciler.errors import ClusterError, Conflict, NotFound, SettingsError, Unauthorized, Unreachable
from reconciler.instruct import Instructed, parse_until
from reconciler.model.instructions import Word
from reconciler.model.node import Node, Wanted
from reconciler.model.plan import Notice
from reconciler.model.selector import LabelSelector
from reconciler.report.safe import json_text
from reconciler.report.text import shown
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which nodes a person means: names, a label selector, or all nodes that the settings select."""

    names: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    everything: bool = False

    def of(self, nodes: dict[str, Node], settings: Settings) -> list[Node]:
        """Return these nodes; NotFound for a name that no node has, and for a selector without nodes."""
        if self.names:
            check_nodes(self.names, nodes.keys())
            return [nodes[name] for name in dict.fromkeys(self.names)]
        found = [
            node
            for node in nodes.values()
            if settings.in_fleet(node.labels)
            and (self.selector is None or self.selector.matches(node.labels))
        ]
        if not found:
            raise NotFound(f"no node matches {self.selector or settings.node_selector}", status=404)
        return found


def _chosen(nodes: tuple[str, ...], selector: LabelSelector | None, everything: bool) -> Chosen:
    if sum((bool(nodes), selector is not None, everything)) != 1:
        raise click.UsageError("name the nodes, or give --selector, or --all")
    return Chosen(nodes, selector, everything)


chosen = options.as_one(
    "chosen",
    _chosen,
    click.argument("nodes", nargs=-1),
    click.option(
        "--selector", "-l", type=options.SELECTOR, help="The nodes with these labels, as in kubectl."
    ),
    click.option("--all", "everything", is_flag=True, help="All nodes that the settings select."),
)
"""The nodes, as the argument `chosen`."""

until = click.option(
    "--until",
    help="When it ends: +2h, a date and time in the time zone of the settings, or RFC 3339.  "
    "[default: never]",
)
reason = click.option("--reason", default="", help="The reason, shown in reports.  [default: none]")


@dataclass(frozen=True, slots=True)
class Scene:
    """What a command works with: the nodes of the cluster, the settings, and the moment (UTC)."""

    nodes: dict[str, Node]
    settings: Settings
    connection: Connection
    now: datetime

    def word(self, until: str | None, reason: str) -> Word:
        """Return who gives the instruction, and why; SettingsError for what the annotation can't hold."""
        try:
            at = parse_until(until, self.settings.time_zone, self.now) if until is not None else None
        except ValueError as error:
            raise SettingsError((f"--until: {error}",)) from error
        try:
            return Word(person(), self.now.replace(microsecond=0), at, reason)
        except ValueError as error:
            raise SettingsError((str(error),)) from error


Instruct = Callable[[Scene], Callable[[Node], Instructed]]
"""Reads what the command needs once, and returns what it does about each node."""


def carry_out(
    which: Chosen,
    instruct: Instruct,
    event: str,
    config: SettingsSource | None,
    target: Target,
    output: str,
) -> int:
    """Write the instruction on each node, and an Event with the reason `event`; return the exit code.

    A person needs no lock: the resourceVersion that was read protects against another writer in between.
    """
    now = datetime.now(UTC)
    settings = parse_settings("", "") if config is None else settings_from(config, target, now)
    connection = Connection(target.kubeconfig, target.context)
    try:
        cluster = Cluster(connection, guard=lambda: None, namespace=target.namespace)
        nodes = {
            node.name: node for node in cluster.nodes(Wanted(frozenset(), settings.keys.prefix, labels=None))
        }
        scene = Scene(nodes, settings, connection, now)
        decide = instruct(scene)
        results = _write_all(which.of(nodes, settings), decide, cluster, EventsByHand(connection), event)
    finally:
        connection.close()
    if not which.names:
        # Thousands of nodes may have nothing to change.
        results = [one for one in results if one["changed"] or not one["ok"]]
    if output == "json":
        document = {"nodes": results}
        echo(json_text(json.dumps(document, indent=2, ensure_ascii=False)))
    elif not results:
        echo("nothing to change on any of these nodes")
    else:
        for one in results:
            echo(
                shown([f"{one['node']}: {one['message']}"], settings.time_zone, width()),
                err=not one["ok"],
                nl=False,
            )
    return 0 if all(one["ok"] for one in results) else 1


def _write_all(
    nodes: list[Node],
    decide: Callable[[Node], Instructed],
    cluster: Cluster,
    events: EventsByHand,
    event: str,
) -> list[dict[str, Any]]:
    """Write to each node, and return each result.

    Once the API server does not answer, or refuses the credentials, nothing more is tried.
    """
    results: list[dict[str, Any]] = []
    silent = False
    for node in nodes:
        found = decide(node)
        message, ok, changed = found.done, not found.refused, False
        if found.write is not None and silent:
            message, ok = "not written", False
        elif found.write is not None:
            try:
                cluster.patch_node(found.write)
                changed = True
            except ClusterError as error:
                silent = isinstance(error, Unreachable | Unauthorized)
                message, ok = f"not written: {_because(error)}", False
        if changed:
            who = person()
            events.write(node, Notice(event, message if who in message else f"{message} by {who}"))
        results.append({"node": node.name, "ok": ok, "changed": changed, "message": message})
    return results


def _because(error: ClusterError) -> str:
    if isinstance(error, Conflict):
        return f"{error}; run the command again"
    return f"needs {error.needs}" if error.needs else str(error)
