"""`reconciler approve`: approve drains, or withdraw the approval."""

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
from reconciler.features.approvals import instruct
from reconciler.model.instructions import Word
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.passes.instruct import InstructionResult


@click.command("approve")
@on_nodes
@until_option
@reason_option
@click.option("--cancel", is_flag=True, help="Withdraw the approval.")
def approve(given: CommonOptions, until: str | None, reason: str, cancel: bool) -> int:
    """Approve drains for what is announced now, or withdraw the approval.

    It approves the events that the nodes report now and that need an approval by the settings. A node that
    you name is also approved for its workflows, if the settings have a check `approved`. The exit code is 1
    if no reconciler runs: the approval is written, but nobody acts on it now.
    """
    if cancel and (until is not None or reason):
        raise click.UsageError("--cancel withdraws the approval; give neither --until nor --reason with it")

    def asked(scene: Scene) -> InstructionPlan:
        if cancel:
            means = instruct.withdrawal_means(given.chosen.words, given.chosen.arguments)
            withdrawn = partial(instruct.unapproved, prefix=scene.prefix, who=scene.who, now=scene.now)
            return InstructionPlan(withdrawn, means=means)
        word, named = scene.word(until, reason), bool(given.chosen.names)
        settings = scene.settings
        asks = "approved" in settings.profile_checks if scene.known else None
        approve = partial(instruct.approved, word=word, prefix=scene.prefix, known=scene.known)
        has_data = keys_of(scene.prefix).maintenance_data

        def approved(node: Node) -> InstructionResult:
            workflows = named and (has_data in node.annotations if asks is None else asks)
            instructed = approve(node, plans.get(node.name), workflows=workflows)
            return (
                instructed
                if named or not instructed.refused
                else InstructionResult(instructed.done, idle=True)
            )

        plans = scene.plans()
        means = instruct.approval_means(word, given.chosen.words, given.chosen.arguments)
        return InstructionPlan(approved, means=means, word=Word(), awaits_pass=True)

    return carry_out(given, asked, "MaintenanceApproved")
