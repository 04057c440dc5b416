"""Writes instructions of a person on nodes: what `approve`, `hold`, `resume` and `defer` have in common."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click
from msgspec import Struct

from jobs import options
from jobs.completion import values
from jobs.runtime.by_hand import EventsByHand, check_nodes, person
from jobs.runtime.environment import Target
from jobs.runtime.output import echo, echo_for_programs, for_programs, width
from jobs.runtime.settings_source import SettingsInUse, SettingsSource, settings_in_use
from reconciler.calendar.values import literal, parse_ahead
from reconciler.features.approvals.instruct import Instructed, consequence
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NotFound,
    Rejected,
    SettingsError,
    Unauthorized,
    Unreachable,
)
from reconciler.model.instructions import ALL, PersonHold, Word, is_scope, pool_scope
from reconciler.model.node import POOL_ANNOTATIONS, Node, Wanted
from reconciler.model.plan import Notice
from reconciler.model.selector import LabelSelector
from reconciler.model.writes import NAMES, other_prefixes, own_keys
from reconciler.report.safe import json_text
from reconciler.report.text import shown
from reconciler.settings.schema import Settings

_MOST_MEANT = 20
"""Nodes of which people are told what an instruction means for them."""


class Chosen(Struct, frozen=True):
    """Which nodes a person means: names, a label selector, a pool, or all nodes that the settings select.

    `scope` is that of an instruction to all nodes or to a pool, empty for others.
    """

    names: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    scope: str = ""

    def of(self, nodes: dict[str, Node], settings: Settings) -> list[Node]:
        """Return these nodes; NotFound for a name that no node has, and for a selector without nodes."""
        if self.names:
            check_nodes(self.names, nodes.keys())
            return [nodes[name] for name in dict.fromkeys(self.names)]
        found = [node for node in nodes.values() if settings.in_fleet(node.labels) and self._has(node)]
        if not found:
            chosen = self.selector or (self.scope if self.scope != ALL else settings.node_selector)
            raise NotFound(f"no node matches {chosen}", status=404)
        return found

    def _has(self, node: Node) -> bool:
        if self.selector is not None:
            return self.selector.matches(node.labels)
        return self.scope in (ALL, pool_scope(node.pool))


def _chosen(
    nodes: tuple[str, ...], selector: LabelSelector | None, pool: str | None, everything: bool
) -> Chosen:
    if sum((bool(nodes), selector is not None, pool is not None, everything)) != 1:
        raise click.UsageError("name the nodes, or give --selector, --pool or --all")
    scope = ALL if everything else pool_scope(pool or "")
    if pool is not None and not is_scope(scope):
        raise click.UsageError(f"--pool: {literal(pool)} is not the name of a pool")
    return Chosen(nodes, selector, scope)


chosen = options.as_one(
    "chosen",
    _chosen,
    options.nodes,
    options.selector,
    click.option("--pool", shell_complete=values.pools, help="The nodes of this pool."),
    click.option("--all", "everything", is_flag=True, help="All nodes that the settings select."),
)
"""The nodes, as the argument `chosen`."""

until = click.option(
    "--until",
    help="When it ends: +2h, a date and time in the time zone of the settings, or RFC 3339.  "
    "[default: never]",
)
reason = click.option("--reason", default="", help="The reason, shown in reports.  [default: none]")


class Scene(Struct, frozen=True):
    """What a command works with: the settings, the moment (UTC), and the API server."""

    settings: Settings
    now: datetime
    connection: Connection
    target: Target

    def word(self, until: str | None, reason: str, scope: str = "") -> Word:
        """Return who gives the instruction, and why; SettingsError for what the annotation can't hold."""
        try:
            at = parse_ahead(until, self.settings.time_zone, self.now) if until is not None else None
        except ValueError as error:
            raise SettingsError((f"--until: {error}",)) from error
        try:
            return Word(person(), self.now.replace(microsecond=0), at, reason, scope)
        except ValueError as error:
            raise SettingsError((str(error),)) from error


class Asked(Struct, frozen=True):
    """What a command does about each node, and what it has done for all of them at once, in words.

    `changed` says that the ledger has changed. `keeps` is who keeps drains from their start and until when,
    if the command does that: then it says what that means for the cases of these nodes.
    """

    on: Callable[[Node], Instructed]
    done: str = ""
    changed: bool = False
    keeps: Word | None = None


Instruct = Callable[[Scene], Asked]
"""Reads what the command needs once, and does what is done once."""


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
    policy = settings_in_use(config, target, now)
    settings = policy.settings
    connection = Connection(target.kubeconfig, target.context)
    try:
        cluster = Cluster(connection, guard=lambda: None, namespace=target.namespace)
        wanted = Wanted(
            frozenset(), settings.keys.prefix, annotations=POOL_ANNOTATIONS, labels=None, names=NAMES
        )
        nodes = which.of({node.name: node for node in cluster.nodes(wanted)}, settings)
        if policy.defaults:
            check_prefix(nodes, policy)
        scene = Scene(settings, now, connection, target)
        asked = instruct(scene)
        if asked.done:
            # A pass may have begun a drain since the list. After the ledger is written, none begins.
            nodes = which.of({node.name: node for node in cluster.nodes(wanted)}, settings)
        events = EventsByHand(connection)
        if asked.changed:
            events.write_about_all(target.namespace, Notice(event, _with_person(asked.done)))
        results = _write_all(nodes, asked.on, cluster, events, event)
        meant = _consequences(asked.keeps, nodes, scene) if asked.keeps is not None else []
    finally:
        connection.close()
    # Thousands of nodes may have nothing to change.
    results = [one for one in results if not one.pop("idle") or which.names]
    for line in policy.first_line(output):
        echo(line)
    if for_programs(output):
        document = policy.named_in({"done": asked.done or None, "nodes": results, "consequences": meant})
        text = json_text(json.dumps(document, indent=2, ensure_ascii=False))
        echo_for_programs(text, output)
    else:
        _print(asked.done, results, settings, width(output))
        for one in meant[:_MOST_MEANT]:
            line = shown([f"{one['node']}: {one['consequence']}"], settings.time_zone, width(output))
            echo(line, nl=False)
        if len(meant) > _MOST_MEANT:
            echo(f"and {len(meant) - _MOST_MEANT} more nodes with a case; reconciler plan shows them")
    return 0 if all(one["ok"] for one in results) else 1


def _consequences(word: Word, nodes: list[Node], scene: Scene) -> list[dict[str, str]]:
    """Return what the instruction means for the cases of these nodes, nothing if that can't be read."""
    from jobs.runtime.outside import Wiring
    from reconciler.run import rehearse

    try:
        outside = Wiring(scene.connection, scene.target).to_read(scene.settings)
        plan = rehearse(outside, scene.settings, datetime.now(UTC))
    except ClusterError as error:
        echo(f"warning: what this means for announced events is not known ({_because(error)})", err=True)
        return []
    names = {node.name for node in nodes}
    found = ((one.node, consequence(one, word)) for one in plan.nodes if one.node in names)
    return [{"node": node, "consequence": words} for node, words in found if words]


def hold_many(hold: PersonHold, scene: Scene) -> str:
    """Hold all nodes, or a pool, with the ledger; return in words what was done."""
    # The ledger knows every source, and their settings: few commands need it.
    from reconciler.kubernetes.ledger import change_holds

    def change(before: tuple[PersonHold, ...]) -> tuple[PersonHold, ...]:
        others = (
            one for one in before if one.word.scope != hold.word.scope and not one.word.ended(scene.now)
        )
        return (*others, hold)

    try:
        before = change_holds(scene.connection, scene.target.namespace, change)
    except ValueError as error:
        raise SettingsError((str(error),)) from error
    replaced = [one for one in before if one.word.scope == hold.word.scope and not one.word.ended(scene.now)]
    return "; ".join((hold.words(""), *(f"before, {one.words('')}" for one in replaced)))


def resume_many(scope: str, scene: Scene) -> tuple[str, tuple[PersonHold, ...]]:
    """End the hold of all nodes, or of a pool; return in words what was done, and the holds that ended."""
    from reconciler.kubernetes.ledger import change_holds

    def change(before: tuple[PersonHold, ...]) -> tuple[PersonHold, ...]:
        return tuple(one for one in before if one.word.scope != scope)

    before = change_holds(scene.connection, scene.target.namespace, change)
    ended = [one for one in before if not one.word.ended(scene.now)]
    over = tuple(one for one in ended if one.word.scope == scope)
    done = (f"resumed: ended the hold {one.word}" for one in over)
    return "; ".join((*done, *(one.words("") for one in ended if one.word.scope != scope))), over


def holds_of_many(scene: Scene) -> tuple[PersonHold, ...]:
    """Return the holds of all nodes and of pools; none if we may not read them."""
    try:
        return Cluster(scene.connection, namespace=scene.target.namespace).ledger().holds
    except (Forbidden, Unauthorized, Rejected):
        return ()


def _print(done: str, results: list[dict[str, Any]], settings: Settings, columns: int | None) -> None:
    if done:
        echo(shown([done], settings.time_zone, columns), nl=False)
    elif not results:
        echo("nothing to change on any of these nodes")
    for one in results:
        line = shown([f"{one['node']}: {one['message']}"], settings.time_zone, columns)
        echo(line, err=not one["ok"], nl=False)


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
            events.write(node, Notice(event, _with_person(message)))
        results.append(
            {"node": node.name, "ok": ok, "changed": changed, "message": message, "idle": found.idle}
        )
    return results


def check_prefix(nodes: list[Node], policy: SettingsInUse) -> None:
    """Raise SettingsError if a reconciler with another prefix is on these nodes, and none with this one.

    It reads nothing that is written with these settings.
    """
    prefix = policy.settings.keys.prefix
    for node in nodes:
        others = other_prefixes(node, prefix)
        if others and not own_keys(node, prefix):
            text = f"{node.name} has keys of {others[0]}; a reconciler with this keys.prefix reads nothing"
            raise SettingsError((policy.defaults, f"{text} that is said with the default settings"))


def _with_person(message: str) -> str:
    who = person()
    return message if who in message else f"{message} by {who}"


def _because(error: ClusterError) -> str:
    if isinstance(error, Conflict):
        return f"{error}; run the command again"
    return f"needs {error.needs}" if error.needs else str(error)
