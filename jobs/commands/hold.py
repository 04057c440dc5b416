"""`reconciler hold`: keep nodes from a drain."""

from __future__ import annotations

from functools import partial

import click

from jobs.runtime.instructing import (
    CommonOptions,
    InstructionPlan,
    Scene,
    carry_out,
    on_nodes,
    reason_option,
    until_option,
)
from reconciler.model.errors import SettingsError
from reconciler.model.instructions import PersonHold
from reconciler.model.node import Node
from reconciler.passes import instruct
from reconciler.passes.instruct import InstructionResult


@click.command("hold")
@on_nodes
@until_option
@reason_option
@click.option("--now", "stops", is_flag=True, help="Also stop a drain that runs.")
def command(given: CommonOptions, until: str | None, reason: str, stops: bool) -> int:
    """Hold nodes: no drain of them begins, not even at a deadline.

    --all and --pool also hold nodes that join later. Maintenance that has begun goes on, and the node is
    uncordoned after it. `reconciler resume` ends the hold.
    """

    def asked(scene: Scene) -> InstructionPlan:
        hold = PersonHold(scene.word(until, reason, given.chosen.scope), stops)
        means = instruct.hold_means(hold, given.chosen.words, given.chosen.arguments)
        if not hold.word.scope:
            held = partial(instruct.held, hold=hold, prefix=scene.prefix, now=scene.now)
            return InstructionPlan(held, means=means, word=hold.word)
        done = _hold_many(hold, scene)
        on = partial(instruct.stopped, hold=hold, prefix=scene.prefix) if stops else _goes_on
        return InstructionPlan(on, done, changed=True, means=means, word=hold.word)

    return carry_out(given, asked, "MaintenanceHeld")


def _goes_on(node: Node) -> InstructionResult:
    return InstructionResult(f"{node.name} goes on", idle=True)


def _hold_many(hold: PersonHold, scene: Scene) -> str:
    """Hold all nodes, or a pool, with the ledger; return in words what was done."""
    # The ledger knows every source, and their settings: few commands need it.
    from reconciler.kubernetes.ledger import change_holds

    def same(before: PersonHold) -> bool:
        return before.word.scope == hold.word.scope

    def change(before: tuple[PersonHold, ...]) -> tuple[PersonHold, ...]:
        others = (other for other in before if not same(other) and not other.word.ended(scene.now))
        return (*others, hold)

    try:
        before = change_holds(scene.connection, scene.target.namespace, change)
    except ValueError as error:
        raise SettingsError((str(error),)) from error
    replaced = (other for other in before if same(other) and not other.word.ended(scene.now))
    return "; ".join((hold.words(""), *(f"before, {other.words('')}" for other in replaced)))
