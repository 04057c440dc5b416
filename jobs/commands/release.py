"""`reconciler release`: undoes by hand what is ours on nodes, and names what stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.by_hand import (
    EventsByHand,
    Said,
    arguments_for,
    author,
    echo_each,
    objects_of_ours,
    prefix_in_use,
    write_decided,
)
from jobs.runtime.clock import ServerClock
from jobs.runtime.environment import Target, connected
from jobs.runtime.output import echo
from jobs.runtime.process import Ports, ports_made_by, processes
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.ledger import keep_release, read_holds
from reconciler.model.errors import ClusterError, NotFound, RecordUnreadable
from reconciler.model.instructions import ALL, Ended, PersonHold, Word
from reconciler.model.keys import Writer, keys_of
from reconciler.model.node import Node, Wanted
from reconciler.model.plan import Notice
from reconciler.model.selector import LabelSelector
from reconciler.model.tasks import Clients
from reconciler.model.writes import WRITER, NodeWrite, names_of_signs, other_prefixes
from reconciler.passes.decision import NodeSigns
from reconciler.passes.release import left_on, ours_on, why_left
from reconciler.passes.release import release as released
from reconciler.run import PARTS
from reconciler.settings.schema import Settings

_NAMED = 5
"""Nodes that a line names."""


class _Which(Struct, frozen=True):
    """Which nodes to release: named ones, those that a selector matches, or all."""

    names: tuple[str, ...] = ()
    selector: LabelSelector | None = None

    @property
    def everything(self) -> bool:
        """Whether it is about the whole cluster, so that nothing of ours has to stay."""
        return not self.names and self.selector is None

    def of(self, nodes: Mapping[str, Node]) -> list[str]:
        """Return their names; NotFound if no node matches the selector."""
        if self.selector is None:
            return list(self.names or nodes)
        found = [node.name for node in nodes.values() if self.selector.matches(node.labels)]
        if not found:
            raise NotFound(f"no node matches {self.selector}", status=404)
        return found


class _ReleaseOptions(Struct, frozen=True):
    """What is removed: the keys with this prefix, those of these writers also outside of a case.

    `reset`: also a record that can't be read. `dry_run`: nothing is written. `selector` chose the nodes, None
    if they were named. `by` is who releases them, None if nothing of ours is to be left.
    """

    prefix: str
    writers: tuple[Writer, ...]
    reset: bool
    dry_run: bool
    selector: LabelSelector | None = None
    by: Ended | None = None


class _Done(Struct, frozen=True):
    """What became of a node, or of objects: the line about it, empty if there is nothing to say.

    `left` are the keys that stay.
    """

    line: str
    ok: bool = True
    left: tuple[str, ...] = ()


def _which(nodes: tuple[str, ...], selector: LabelSelector | None, everything: bool) -> _Which:
    if sum((bool(nodes), selector is not None, everything)) != 1:
        raise click.UsageError("name the nodes, or give --selector or --all")
    return _Which(nodes, selector)


@click.command("release")
@options.as_one(
    "which",
    _which,
    options.nodes,
    options.selector,
    click.option(
        "--all",
        "everything",
        is_flag=True,
        help="Release all nodes, to uninstall, with holds, requests, data of profiles and published objects.",
    ),
)
@click.option("--reset", is_flag=True, help="Also remove a record that can't be read.")
@click.option("--dry-run", is_flag=True, help="Print what would be released. Write nothing.")
@options.prefix
@options.cluster
def command(which: _Which, reset: bool, dry_run: bool, prefix: str | None, target: Target) -> int:
    """Uncordon nodes, and remove the reconciler's labels and annotations.

    What people have said of nodes, such as holds and requests, stays, named with the command that ends it. A
    cordon of someone else stays. If the event still exists, the next pass drains the node again: set
    `mode: Finish` first, or label the node.
    """
    return release(which, target, reset=reset, prefix=prefix, dry_run=dry_run)


def release(which: _Which, target: Target, *, reset: bool, prefix: str | None, dry_run: bool = False) -> int:
    """Undo what is ours on these nodes, name what stays, and return the exit code.

    A dry run only prints what would be undone.

    This takes no lock: a running pass sees that the node is uncordoned and has no record, and ends the
    case. If the event still exists, the next pass starts a new case.
    """
    with connected(target) as connection:
        prefix = prefix_in_use(prefix, connection, target.namespace)
        # A person needs no lock: a write changes only a node on which no pass has written in between.
        given = Ports(connection, target, lambda: None)
        cluster = Cluster(connection, guard=given.guard, namespace=target.namespace)
        makers = [process.ports(given) for process in processes() if process.ports]
        clients = {**ports_made_by(makers, Settings()).clients, WRITER.name: cluster}.get
        nodes = {node.name: node for node in cluster.nodes(_wanted(prefix))}
        # Whose keys are removed also outside of a case. An agent that runs writes its key again.
        writers: tuple[Writer, ...] = ()
        if which.everything:
            agent = () if cluster.agents().installed else (Writer.AGENT,)
            writers = (Writer.PASS, Writer.COMMAND, *agent)
        chosen = which.of(nodes)
        who = author(connection) if not dry_run else ""
        at = ServerClock(connection).now().replace(microsecond=0)
        by = None if which.everything else Ended("released", who, at)
        asked = _ReleaseOptions(prefix, writers, reset, dry_run, which.selector, by)
        gone = (ours_on(node, prefix) != left_on(node, prefix, writers) for node in nodes.values())
        if which.everything and not dry_run and any(gone):
            # No node may keep it. It is written first, so that no pass sees what is gone without it.
            try:
                keep_release(connection, target.namespace, Ended("released", who, at, word=Word(scope=ALL)))
            except ClusterError as error:
                echo(f"warning: who released all nodes is not kept ({error.because})", err=True)
        results = {name: _release_one(name, nodes.get(name), cluster, clients, asked) for name in chosen}
        objects = list(_objects(clients, asked)) if which.everything else []
        events = EventsByHand(connection)
        for name, done in results.items():
            if done.line and done.ok and not dry_run:
                message = f"{done.line.removeprefix(f'{name}: ')} by {who}, by hand"
                events.write(nodes[name], Notice("MaintenanceStopped", message))
        seen = {name: nodes[name] for name in results if name in nodes}
        left = [*_left(results, asked), *_others(seen.values(), prefix)]
        if not left and not which.names and not any(done.line for done in results.values()):
            echo("no node has labels or annotations of the reconciler")
        echo_each(
            Said(name, done.line.removeprefix(f"{name}: "), done.ok)
            for name, done in results.items()
            if done.line
        )
        for line in (*(done.line for done in objects), *left):
            echo(line)
        in_namespace = f"left in the namespace {target.namespace}:"
        if which.everything and (ours := objects_of_ours(connection, target.namespace)):
            echo(f"{in_namespace} {', '.join(ours)}; they go with the namespace")
        holds: tuple[PersonHold, ...] = ()
        with suppress(ClusterError):
            holds = read_holds(connection, target.namespace)
        now, pools = datetime.now(UTC), {node.pool for node in seen.values()}
        for hold in holds:
            if which.everything:
                # A new installation would read it.
                echo(f"{in_namespace} {hold.words('')}")
            elif any(hold.applies(pool, now) for pool in pools):
                echo(f"still held: {hold.words('')}")
        if dry_run:
            echo("dry run: nothing was written")
        return 0 if all(done.ok for done in (*results.values(), *objects)) else 1


def _wanted(prefix: str) -> Wanted:
    read = PARTS.wants(Settings())
    return Wanted(read.conditions, prefix, annotations=read.annotations, labels=None, names=names_of_signs())


def _release_one(
    name: str, node: Node | None, cluster: Cluster, clients: Clients, asked: _ReleaseOptions
) -> _Done:
    if node is None:
        return _Done(f"{name}: there is no such node", ok=False)
    prefix, remarks = asked.prefix, list[str]()
    decided: list[tuple[Node, NodeSigns, NodeWrite | None]] = []

    def decide(now: Node) -> NodeWrite | None:
        signs = PARTS.removed(now, prefix)
        write = released(now, prefix, signs, reset=asked.reset, writers=asked.writers, by=asked.by)
        decided.append((now, signs, write))
        return write

    try:
        if asked.dry_run:
            decide(node)
        else:
            answer = write_decided(cluster, node, _wanted(prefix), decide)
            remarks += [answer.said] if answer is not None else []
            remarks += [sign.send(clients) or "" for sign in decided[-1][1].writes]
    except RecordUnreadable as error:
        would = "would not be released" if asked.dry_run else "not released"
        line = f"{name}: {would}, because of its record: {error}; --reset removes it"
        return _Done(line, ok=False, left=ours_on(node, prefix))
    except ClusterError as error:
        return _Done(f"{name}: {error}", ok=False, left=ours_on(node, prefix))
    node, signs, write = decided[-1]
    left = left_on(node, prefix, asked.writers, signs)
    done = "would be released" if asked.dry_run else "released"
    if write is None:
        return _Done(f"{name}: {done}" if signs.writes else "", left=left)
    keys = keys_of(prefix)
    of_features = (key for key in signs.annotations if keys.owns(key) and key in node.annotations)
    said = sorted(
        key.rpartition("/")[2]
        for key in {*(key for key in write.annotations if _of_a_person(key, prefix)), *of_features}
    )
    with_ = f", without its {', '.join(said)}" if said else ""
    remarks = [f"; {remark}" for remark in remarks if remark]
    if write.unschedulable is False:
        return _Done(f"{name}: {done} and uncordoned{with_}{''.join(remarks)}", left=left)
    stays = "it would stay cordoned" if asked.dry_run else "still cordoned"
    still = f"; {stays}, not by us" if node.unschedulable else ""
    return _Done(f"{name}: {done}{with_}{still}{''.join(remarks)}", left=left)


def _of_a_person(key: str, prefix: str) -> bool:
    """Whether a person has given what this key says, with a command that also ends it."""
    known = keys_of(prefix).on_nodes.get(key)
    return known is not None and bool(known.ends)


def _left(results: Mapping[str, _Done], asked: _ReleaseOptions) -> Iterator[str]:
    """Yield a line for each key that stays.

    Of some nodes, only those that people have given with commands count: the others belong to what runs on.
    """
    by_key: dict[str, list[str]] = {}
    for name, done in results.items():
        for key in done.left:
            if asked.writers or _of_a_person(key, asked.prefix):
                by_key.setdefault(key, []).append(name)
    for key, names in sorted(by_key.items()):
        which = arguments_for(names, asked.selector)
        why = why_left(key, asked.prefix).replace("NODE", which)
        yield f"left on {_counted(names)}: {key}; {why}"


def _others(nodes: Iterable[Node], prefix: str) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        for other in other_prefixes(node, prefix):
            found.setdefault(other, []).append(node.name)
    for other, names in sorted(found.items()):
        yield f"left on {_counted(names)}: keys of another reconciler; --prefix {other} releases them"


def _counted(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} {'node' if len(names) == 1 else 'nodes'} ({shown}{more})"


def _objects(clients: Clients, asked: _ReleaseOptions) -> Iterator[_Done]:
    """Delete the objects by which features show cases, and yield what became of each kind."""
    for objects in (feature.objects for feature in PARTS.features if feature.objects):
        try:
            deletions = objects.deletions(clients, asked.prefix)
        except ClusterError as error:
            yield _Done(f"left: {objects.kind}, if there are any: {error}")
            continue
        gone = 0
        try:
            for deletion in () if asked.dry_run else deletions:
                deletion.send(clients)
                gone += 1
        except ClusterError as error:
            yield _Done(f"left: {len(deletions) - gone} {objects.kind}: {error}", ok=False)
        else:
            done = "would be deleted" if asked.dry_run else "deleted"
            if deletions:
                yield _Done(f"{objects.kind}: {len(deletions)} {done}")
