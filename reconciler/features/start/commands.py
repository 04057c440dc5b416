"""`reconciler start`: a person begins the drain of announced maintenance."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime

import click
from msgspec import Struct

from jobs import options
from jobs.completion import values
from jobs.runtime.by_hand import (
    ByHand,
    EventsByHand,
    Said,
    by_hand,
    check_nodes,
    check_prefix,
    echo_each,
    read_by_hand,
    whole_names,
    write_nodes,
)
from jobs.runtime.environment import Target
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, echo_for_programs, for_programs, width
from jobs.runtime.outside import examined, reconciler_of
from jobs.runtime.settings_source import SettingsSource, settings_in_use
from reconciler.features.start.instruction import NAME, Start, key_of, may_begin, start_of, text_of
from reconciler.model import limits
from reconciler.model.errors import SettingsError
from reconciler.model.explanation import Examination
from reconciler.model.holds import DISMISSED, LOOKED_AFTER, NOT_CLAIMED, RECORD_READABLE, SETTINGS
from reconciler.model.instructions import ForEvents, Word, instructions_of
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import Hold, JudgedEvent, NodePlan, Notice
from reconciler.model.record import CaseRecord, Record, State, record_of
from reconciler.model.values import replace
from reconciler.model.writes import NodeWrite, node_write
from reconciler.passes.node_facts import DEFAULT
from reconciler.profiles import case as cases
from reconciler.profiles.instructed import case_of
from reconciler.report.acting import reconciler_value
from reconciler.report.explain import plan_of
from reconciler.report.safe import json_text
from reconciler.report.text import row, shown
from reconciler.run import as_if
from reconciler.settings.schema import Mode, Settings

_REFUSES = (LOOKED_AFTER, RECORD_READABLE, NOT_CLAIMED, DISMISSED)
"""Holds that no start ends."""


class Answer(Struct, frozen=True):
    """What a start comes to on the node as it is: what is said of it, and the patch, None for none.

    `start` is the one that the node then has, None without one. `refused`: it can't be done, and `text` says
    why and what to do.
    """

    text: str
    write: NodeWrite | None = None
    start: Start | None = None
    refused: bool = False


class Outlook(Struct, frozen=True):
    """What a start means by the plan of a pass: the holds that it ends, and those that it does not end.

    `begins` says in words when the drain begins. `refused` says why there can be no start, empty if there
    can.
    """

    overrules: tuple[Hold, ...] = ()
    waits: tuple[Hold, ...] = ()
    begins: str = ""
    refused: str = ""


@click.command("start")
@click.argument("node", shell_complete=values.nodes)
@options.optional_config
@options.output
@options.cluster
@click.option(
    "--now", "at_once", is_flag=True, help="Overrule windows, freezes, places of the budget and spacing."
)
@click.option("--reason", default="", help="The reason, shown in reports.  [default: none]")
@click.option("--yes", is_flag=True, help="Do not ask.")
def start(
    node: str,
    config: SettingsSource | None,
    output: str,
    target: Target,
    at_once: bool,
    reason: str,
    yes: bool,
) -> int:
    """Begin the drain of announced maintenance earlier than planned.

    It begins as soon as windows, freezes, the budget and spacing permit it: without an approval, and before
    its planned start. With --now it begins with the next pass, whatever these say. Holds and
    PodDisruptionBudgets apply all the same. The case ends as any other one. The exit code is 1 if no
    reconciler runs: the start is written, but nobody acts on it now.
    """
    policy = settings_in_use(config, target, datetime.now(UTC))
    settings, machine = policy.settings, for_programs(output)
    with by_hand(target) as hand:
        reconciler = reconciler_of(hand.connection, target, settings)
        echo_lines(policy.first_lines(output, reconciler, hand.now()))
        nodes = hand.nodes(settings.keys.prefix)
        read = nodes[whole_names([node], nodes.keys())[0]]
        if policy.defaults:
            check_prefix([read], policy)
        try:
            word = Word(hand.who, hand.now().replace(microsecond=0), None, reason)
        except ValueError as error:
            raise SettingsError((f"--reason: {error}",)) from error
        found = examined(hand.connection, target, settings)
        seen = {each.name: each for each in found.snapshot.nodes}
        check_nodes([read.name], seen.keys())
        read = seen[read.name]
        asked = _Asked(found, settings, read.name, word, at_once, known=not policy.defaults)
        answer, outlook = asked.on(read), Outlook()
        if answer.write is not None:
            outlook = asked.outlook
            answer = Answer(outlook.refused, refused=True) if outlook.refused else answer
        if answer.write is not None and not machine:
            _print(read.name, outlook, settings, at_once=at_once)
        if answer.write is not None and not yes:
            answer = _confirmed(
                answer, read.name, may_ask=not machine and sys.stdin.isatty(), at_once=at_once
            )
        if answer.write is not None:
            answer = _write(hand, read, asked, settings)
        if answer.start is not None:
            # Also of a start that the node has already: whoever wrote it may have been killed before this.
            words = answer.start.words
            told = Notice("MaintenanceStartedByPerson", words, once=words)
            EventsByHand(hand.connection, settings.time_zone).write(read, told)
    if machine:
        said = {
            "node": read.name,
            "ok": not answer.refused,
            "changed": answer.write is not None,
            "message": answer.text,
            "overrules": _values(outlook.overrules),
            "waits": _values(outlook.waits),
            "begins": outlook.begins or None,
        }
        document = policy.named_in({"reconciler": reconciler_value(reconciler), NAME: said})
        echo_for_programs(json_text(json.dumps(document, indent=2, ensure_ascii=False)), output)
    else:
        echo_each([Said(read.name, answer.text, not answer.refused)], settings.time_zone)
    return 0 if not answer.refused and (reconciler.acts or answer.write is None) else 1


def _confirmed(answer: Answer, name: str, *, may_ask: bool, at_once: bool) -> Answer:
    """Return the answer if the person who is asked says yes, else that nothing is written."""
    now = " --now" if at_once else ""
    if not may_ask:
        again = f"reconciler start {name}{now} --yes"
        return Answer(f"nothing is written, because nobody can be asked here: {again}", refused=True)
    if click.confirm(f"Start the drain of {name}{' now' if at_once else ''}?"):
        return answer
    return Answer("nothing is written", refused=True)


class _Asked(Struct, frozen=True):
    """What a person asks for, and what a pass has read: a start of the node with this name.

    `known`: the settings are those of the reconciler, and not the default ones.
    """

    found: Examination
    settings: Settings
    name: str
    word: Word
    now: bool
    known: bool

    def on(self, node: Node) -> Answer:
        """Return what the start comes to on the node as it was read last."""
        prefix, name = self.settings.keys.prefix, self.name
        record = record_of(node, prefix)
        case = record.case(DEFAULT) if isinstance(record, Record) else CaseRecord()
        if isinstance(record, Record) and record.claimed_by:
            release = self.settings.keys.names.release(name)
            return Answer(f"{record.claimed_by} drains it by hand; {release} ends that", refused=True)
        events = [event for event in self._announced if not cases.covers(case, event.event)]
        drain = case.drain
        if drain is not None and case.state is State.IN_MAINTENANCE and not events:
            runs = f"its drain runs since {to_text(drain.since)}"
            done = f"it is drained since {to_text(drain.done)}" if drain.done is not None else runs
            begun = f"; {case.facts.begun.words}" if case.facts.begun is not None else ""
            return Answer(f"{done}{begun}; nothing is written")
        if not events:
            return Answer(self._nothing_announced(), refused=True)
        hold = instructions_of(node, prefix, self.found.plan.now, self.found.snapshot.ledger.holds).hold
        if hold is not None:
            return Answer(hold.words(name), refused=True)
        before, announced = start_of(node, prefix), case_of(case)
        if (
            before is not None
            and (before.now or not self.now)
            and all(before.said.covers(event.event, announced) for event in events)
        ):
            return Answer(f"started already {before.said.word.once}; nothing is written", start=before)
        known = tuple(cases.known(event.event) for event in events)
        began = Start(ForEvents(self.word, announced, known[-limits.EVENTS :]), self.now)
        try:
            text = text_of(began, node)
        except ValueError as error:
            return Answer(str(error), refused=True)
        return Answer(began.words, node_write(node, prefix, annotations={key_of(prefix): text}), began)

    @property
    def _announced(self) -> tuple[JudgedEvent, ...]:
        """The events for which a drain may begin, now or later."""
        return tuple(filter(may_begin, self._as_read.events))

    @property
    def _as_read(self) -> NodePlan:
        return plan_of(self._node, self.found.plan)

    @property
    def _node(self) -> Node:
        return next(node for node in self.found.snapshot.nodes if node.name == self.name)

    def _nothing_announced(self) -> str:
        plan = self._as_read
        by_hand = f"to drain it all the same: {self.settings.keys.names.drain_by_hand(self.name)}"
        held = next((hold for hold in plan.holds if hold.code in {kind.code for kind in _REFUSES}), None)
        if held is not None:
            return f"{held.reason}; {by_hand}"
        if plan.events:
            because = "; ".join(dict.fromkeys(event.because for event in plan.events))
            return f"no event requires a drain of it: {because}; {by_hand}"
        if plan.unknowns:
            return f"what is announced is not known: {'; '.join(plan.unknowns)}; {by_hand}"
        return f"no maintenance of it is announced; {by_hand}"

    @property
    def outlook(self) -> Outlook:
        """What the start means on the node as a pass has read it."""
        mode, node = self.settings.mode, self._node
        if not self.known:
            return Outlook(begins="when its drain begins is not known: the settings can't be read here")
        if mode is not Mode.ENFORCE:
            why = f"mode is {mode.value}: no drain begins; {SETTINGS}: `mode: Enforce` lets it begin"
            return Outlook(refused=why)
        write = self.on(node).write
        if write is None:
            return Outlook(refused=self.on(node).text)
        begun = {key: text for key, text in write.annotations.items() if text is not None}
        started = replace(node, annotations={**node.annotations, **begun})
        before = plan_of(node, as_if(self.found, node, self.settings))
        after = plan_of(node, as_if(self.found, started, self.settings))
        refused = [hold for hold in after.holds if hold.code in {kind.code for kind in _REFUSES}]
        refused += [hold for hold in after.holds if hold.code == "onlyReconciler"]
        if refused:
            return Outlook(
                refused=f"{refused[0].reason}; `reconciler explain {self.name}` says who ends that"
            )
        if not any(event.waiver is not None for event in after.events):
            why = "no pass has recorded its event yet, which has neither an ID nor a date"
            return Outlook(refused=f"{why}; start it after the next pass")
        left = {hold.code for hold in after.holds}
        overrules = tuple(hold for hold in before.holds if hold.code not in left)
        return Outlook(overrules, after.holds, _begins(after))


def _begins(after: NodePlan) -> str:
    """Return in words when the drain begins by the plan with the start."""
    schedule = after.schedule
    if after.drain_begins:
        return "its drain begins with the next pass"
    if schedule is None or schedule.planned_start is None:
        return f"no start of its drain is planned{f': {schedule.because}' if schedule is not None else ''}"
    return f"its drain starts at {to_text(schedule.planned_start)}: {schedule.because}"


def _write(hand: ByHand, node: Node, asked: _Asked, settings: Settings) -> Answer:
    """Write the start, and return what came of it on the node as it is then."""
    answers: list[Answer] = []

    def decide(newest: Node) -> NodeWrite | None:
        answers.append(asked.on(newest))
        return answers[-1].write

    for _, problem in write_nodes(hand.cluster, [node], read_by_hand(settings.keys.prefix), decide):
        if problem:
            return Answer(problem, refused=True)
    return answers[-1]


def _print(name: str, outlook: Outlook, settings: Settings, *, at_once: bool) -> None:
    """Print what is in the way of the drain now, and what of this a start overrules."""
    lines = [f"{name}: {'a start now' if at_once else 'a start'} does without:"] if outlook.overrules else []
    lines += [row("without", f"{hold.reason}  [{hold.code}]") for hold in outlook.overrules]
    lines += [f"{name}: nothing is in the way that a start overrules"] if not outlook.overrules else []
    lines += [row("waits", f"{hold.reason}  [{hold.code}]") for hold in outlook.waits]
    lines += [row("then", outlook.begins)] if outlook.begins else []
    lines.append(row("pods", "PodDisruptionBudgets and drain slots apply as in any drain"))
    echo(shown(lines, settings.time_zone, width()), nl=False)


def _values(holds: Iterable[Hold]) -> list[dict[str, str]]:
    return [{"code": hold.code, "because": hold.reason} for hold in holds]
