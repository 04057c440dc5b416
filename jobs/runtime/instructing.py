"""What commands that write instructions of a person on nodes have in common: options, and how they run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.by_hand import (
    ByHand,
    EventsByHand,
    Said,
    arguments_for,
    by_hand,
    check_nodes,
    check_prefix,
    echo_each,
    echo_means,
    read_by_hand,
    why_not,
    words_for,
    write_nodes,
)
from jobs.runtime.environment import Target
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, echo_for_programs, for_programs, width
from jobs.runtime.outside import examined, reconciler_of
from jobs.runtime.settings_source import SettingsSource, settings_in_use
from reconciler.calendar.values import literal, parse_ahead, with_time_left
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import ClusterError, NotFound, SettingsError
from reconciler.model.instructions import ALL, Word, is_scope, pool_scope
from reconciler.model.limits import count_of
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan, Notice
from reconciler.model.selector import LabelSelector
from reconciler.model.writes import NodeWrite
from reconciler.passes.instruct import InstructionResult, consequence
from reconciler.report.acting import reconciler_value
from reconciler.report.safe import json_text
from reconciler.report.text import shown
from reconciler.settings.schema import Settings

_MOST_MEANT = 20
"""Nodes of which a terminal shows what an instruction means for their cases."""


class NodeChoice(Struct, frozen=True):
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
        matching = [node for node in nodes.values() if settings.in_fleet(node.labels) and self._has(node)]
        if not matching:
            chosen = self.selector or (self.scope if self.scope != ALL else settings.node_selector)
            raise NotFound(f"no node matches {chosen}", status=404)
        return matching

    @property
    def words(self) -> str:
        """Which nodes these are, in words."""
        return words_for(self.names, self.scope)

    @property
    def arguments(self) -> str:
        """The arguments with which another command means the same nodes."""
        return arguments_for(self.names, self.selector, self.scope)

    def _has(self, node: Node) -> bool:
        if self.selector is not None:
            return self.selector.matches(node.labels)
        return self.scope in (ALL, pool_scope(node.pool))


def _chosen(
    nodes: tuple[str, ...], selector: LabelSelector | None, pool: str | None, everything: bool
) -> NodeChoice:
    if sum((bool(nodes), selector is not None, pool is not None, everything)) != 1:
        raise click.UsageError("name the nodes, or give --selector, --pool or --all")
    scope = ALL if everything else pool_scope(pool or "")
    if pool is not None and not is_scope(scope):
        raise click.UsageError(f"--pool: {literal(pool)} is not the name of a pool")
    return NodeChoice(nodes, selector, scope)


class CommonOptions(Struct, frozen=True):
    """What the options say that all of these commands have."""

    chosen: NodeChoice
    config: SettingsSource | None
    output: str
    target: Target


on_nodes = options.as_one(
    "given",
    CommonOptions,
    options.as_one(
        "chosen",
        _chosen,
        options.nodes,
        options.selector,
        options.pool,
        click.option("--all", "everything", is_flag=True, help="All nodes that the settings select."),
    ),
    options.optional_config,
    options.output,
    options.cluster,
)

WHEN = "When it ends: 2h from now, a date and time in the time zone of the settings, or RFC 3339."
until_option = click.option("--until", help=f"{WHEN}  [default: never]")
reason_option = click.option("--reason", default="", help="The reason, shown in reports.  [default: none]")


class Scene(Struct, frozen=True):
    """What a command works with: the settings, the moment (UTC), and the API server.

    `who` runs it. `known`: the settings are those of the reconciler, and not the default ones.
    """

    settings: Settings
    now: datetime
    connection: Connection
    target: Target
    who: str
    known: bool = True

    @property
    def prefix(self) -> str:
        """That of the keys."""
        return self.settings.keys.prefix

    def plans(self) -> dict[str, NodePlan]:
        """Return what a pass would do now, by node; raises ClusterError."""
        plan = examined(self.connection, self.target, self.settings).plan
        return {node.node: node for node in plan.nodes}

    def word(self, until: str | None, reason: str, scope: str = "") -> Word:
        """Return who gives the instruction, and why; SettingsError for what the annotation can't hold."""
        try:
            at = parse_ahead(until, self.settings.time_zone, self.now) if until is not None else None
        except ValueError as error:
            raise SettingsError((f"--until: {error}",)) from error
        try:
            return Word(self.who, self.now.replace(microsecond=0), at, reason, scope)
        except ValueError as error:
            raise SettingsError((str(error),)) from error


class InstructionPlan(Struct, frozen=True):
    """What a command does about each node, and what it has done for all of them at once, in words.

    `on` is given the node, and as names the prefix of the keys and the moment. `changed` says that the ledger
    has changed. `means` are sentences about what follows from it, what it does not stop, and what ends it.
    `word` is given if the command says what this means for the cases of these nodes; its `until`
    is when a hold or a deferral ends. `awaits_pass`: it asks for what only a pass can do,
    so it is no success while no reconciler runs.
    """

    on: Callable[[Node], InstructionResult]
    done: str = ""
    changed: bool = False
    means: tuple[str, ...] = ()
    word: Word | None = None
    awaits_pass: bool = False


def carry_out(given: CommonOptions, instructed: Callable[[Scene], InstructionPlan], event: str) -> int:
    """Write the instruction on each node, and an Event with the reason `event`; return the exit code.

    `instructed` reads what the command needs once, and does what is done once.
    """
    which, target, now = given.chosen, given.target, datetime.now(UTC)
    policy = settings_in_use(given.config, target, now)
    settings = policy.settings
    with by_hand(target) as hand:
        reconciler = reconciler_of(hand.connection, target, settings)
        first = policy.first_lines(given.output, reconciler, hand.now())
        nodes = which.of(hand.nodes(settings.keys.prefix), settings)
        if policy.defaults:
            check_prefix(nodes, policy)
        scene = Scene(settings, now, hand.connection, target, hand.who, not policy.defaults)
        asked = instructed(scene)
        if asked.done:
            # A pass may have begun a drain since the list. After the ledger is written, none begins.
            nodes = which.of(hand.nodes(scene.prefix), settings)
        events = EventsByHand(hand.connection, settings.time_zone)
        if asked.changed:
            events.write_about_all(target.namespace, Notice(event, _with_person(asked.done, hand.who)))
        results = _write_all(nodes, asked, hand, scene.prefix, events, event)
        # What is in the ledger is about all nodes, with or without a write on them.
        changed = {result["node"] for result in results if result["changed"]}
        about = nodes if asked.done else [node for node in nodes if node.name in changed]
        means = list(asked.means) if asked.changed or changed else []
        meant = _consequences(asked.word, about, scene) if asked.word is not None and about else []
    # Thousands of nodes may have nothing to change.
    results = [result for result in results if not result.pop("idle") or which.names]
    echo_lines(first)
    if for_programs(given.output):
        said = {"done": asked.done or None, "nodes": results, "means": means, "consequences": meant}
        document = policy.named_in({"reconciler": reconciler_value(reconciler), **said})
        text = json_text(json.dumps(document, indent=2, ensure_ascii=False))
        echo_for_programs(text, given.output)
    else:
        _print(asked.done, results, means, meant, scene)
    done = all(result["ok"] for result in results)
    return 0 if done and (reconciler.acts or not asked.awaits_pass) else 1


def _consequences(word: Word, nodes: list[Node], scene: Scene) -> list[dict[str, str]]:
    """Return what the instruction means for the cases of these nodes, nothing if that can't be read."""
    try:
        plans = scene.plans()
    except ClusterError as error:
        echo(f"warning: what this means for announced events is not known ({why_not(error)})", err=True)
        return []
    names = {node.name for node in nodes}
    means = ((name, consequence(plan, word)) for name, plan in plans.items() if name in names)
    return [{"node": name, "consequence": words} for name, words in means if words]


def _print(
    done: str, results: list[dict[str, Any]], means: list[str], meant: list[dict[str, str]], scene: Scene
) -> None:
    zone, columns = scene.settings.time_zone, width()
    # A moment that was asked for as 4h is in 4h, not in 3h59m.
    now = scene.now.replace(microsecond=0)
    if done:
        echo(shown([done], zone, columns), nl=False)
    elif not results:
        echo("nothing to change on any of these nodes")
    echo_each((Said(result["node"], result["message"], result["ok"]) for result in results), zone)
    echo_means(means, zone, scene.now)
    most = len(meant) if columns is None else _MOST_MEANT
    echo_each((Said(case["node"], with_time_left(case["consequence"], now)) for case in meant[:most]), zone)
    if len(meant) > most:
        echo(f"and {count_of(len(meant) - most, 'more node')} with a case; reconciler plan shows them")


def _write_all(
    nodes: list[Node], asked: InstructionPlan, hand: ByHand, prefix: str, events: EventsByHand, event: str
) -> list[dict[str, Any]]:
    instructed: dict[str, InstructionResult] = {}
    results: list[dict[str, Any]] = []

    def decide(node: Node) -> NodeWrite | None:
        instructed[node.name] = done = asked.on(node)
        return done.write

    for node, problem in write_nodes(hand.cluster, nodes, read_by_hand(prefix), decide):
        done = instructed[node.name]
        changed = done.write is not None and not problem
        if changed:
            events.write(node, Notice(event, _with_person(done.done, hand.who)))
        results.append(
            {
                "node": node.name,
                "ok": not done.refused and not problem,
                "changed": changed,
                "message": problem or done.done,
                "idle": done.idle,
            }
        )
    return results


def _with_person(message: str, who: str) -> str:
    return message if who in message else f"{message} by {who}"
