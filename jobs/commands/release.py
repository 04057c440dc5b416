"""`reconciler release`: undoes by hand what is ours on nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import click

from jobs import options
from jobs.runtime.environment import Target
from jobs.runtime.events_by_hand import EventsByHand
from jobs.runtime.person import person
from jobs.runtime.terminal import echo
from reconciler.clients.kubernetes.cluster import Cluster
from reconciler.clients.kubernetes.connection import Connection
from reconciler.errors import ClusterError, NotFound, RecordUnreadable
from reconciler.model.node import Node, Wanted
from reconciler.model.plan import Notice
from reconciler.model.selector import LabelSelector
from reconciler.publishing.registry import ANNOTATIONS, CONDITIONS
from reconciler.release import publications_off
from reconciler.release import release as released


@dataclass(frozen=True, slots=True)
class _Which:
    """Which nodes to release: named ones, those that a selector matches, or all."""

    names: tuple[str, ...] = ()
    selector: LabelSelector | None = None

    def of(self, nodes: Mapping[str, Node]) -> list[str]:
        """Return their names; NotFound if no node matches the selector."""
        if self.selector is None:
            return list(self.names or nodes)
        found = [node.name for node in nodes.values() if self.selector.matches(node.labels)]
        if not found:
            raise NotFound(f"no node matches {self.selector}", status=404)
        return found


def _which(nodes: tuple[str, ...], selector: LabelSelector | None, everything: bool) -> _Which:
    if sum((bool(nodes), selector is not None, everything)) != 1:
        raise click.UsageError("name the nodes, or give --selector or --all")
    return _Which(nodes, selector)


@click.command("release")
@options.as_one(
    "which",
    _which,
    options.nodes,
    options.selector("Select the nodes by label, instead of by name."),
    click.option(
        "--all",
        "everything",
        is_flag=True,
        help="Release all nodes with labels or annotations of the reconciler, to uninstall it.",
    ),
)
@click.option("--reset", is_flag=True, help="Also remove a record that can't be read.")
@click.option("--dry-run", is_flag=True, help="Print what would be released. Write nothing.")
@options.prefix
@options.cluster
def command(which: _Which, reset: bool, dry_run: bool, prefix: str, target: Target) -> int:
    """Uncordon nodes, and remove the reconciler's labels and annotations."""
    return release(which, target, reset=reset, prefix=prefix, dry_run=dry_run)


def release(which: _Which, target: Target, *, reset: bool, prefix: str, dry_run: bool = False) -> int:
    """Undo what is ours on these nodes; return the exit code.

    A dry run only prints what would be undone.

    This takes no lock: a running pass sees that the node is uncordoned and has no record, and ends the
    case. If the event still exists, the next pass starts a new case.
    """
    connection = Connection(target.kubeconfig, target.context)
    try:
        # A person needs no lock; the resourceVersion that was read protects against a pass in between.
        cluster = Cluster(connection, guard=lambda: None, namespace=target.namespace)
        wanted = Wanted(CONDITIONS, prefix, annotations=ANNOTATIONS)
        nodes = {node.name: node for node in cluster.nodes(wanted)}
        chosen = which.of(nodes)
        writer = None if dry_run else cluster
        results = [_release_one(name, nodes.get(name), writer, prefix, reset=reset) for name in chosen]
        events, who = EventsByHand(connection), person()
        for name, (line, ok) in zip(chosen, results, strict=True):
            if line and ok and not dry_run:
                message = f"{line.removeprefix(f'{name}: ')} by {who}, by hand"
                events.write(nodes[name], Notice("MaintenanceStopped", message))
        if not which.names and not any(line for line, _ in results):
            echo("no node has labels or annotations of the reconciler")
        for line, ok in results:
            if line:
                echo(line, err=not ok)
        if dry_run:
            echo("dry run: nothing was written")
        return 0 if all(ok for _, ok in results) else 1
    finally:
        connection.close()


def _release_one(
    name: str, node: Node | None, writer: Cluster | None, prefix: str, *, reset: bool
) -> tuple[str, bool]:
    """Release one node, and return the line about it, and whether that succeeded; no writer: a dry run."""
    if node is None:
        return f"{name}: there is no such node", False
    try:
        write, signs = released(node, prefix, reset=reset), publications_off(node, prefix)
        if writer is not None:
            if write is not None:
                writer.patch_node(write)
            for sign in signs:
                sign.send(writer)
    except RecordUnreadable as error:
        would = "would not be released" if writer is None else "not released"
        return f"{name}: {would}, because of its record: {error}; --reset removes it", False
    except ClusterError as error:
        return f"{name}: {error}", False
    done = "would be released" if writer is None else "released"
    if write is None:
        return (f"{name}: {done}" if signs else ""), True
    if write.unschedulable is False:
        return f"{name}: {done} and uncordoned", True
    stays = "it would stay cordoned" if writer is None else "still cordoned"
    still = f"; {stays}, not by us" if node.unschedulable else ""
    return f"{name}: {done}{still}", True
