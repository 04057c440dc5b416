"""`reconciler defer`: put the drain of nodes off."""

from __future__ import annotations

from functools import partial

import click

from jobs.runtime.instructing import (
    WHEN,
    CommonOptions,
    InstructionPlan,
    Scene,
    carry_out,
    on_nodes,
    reason_option,
)
from reconciler.model.instructions import Deferral
from reconciler.passes import instruct


@click.command("defer")
@on_nodes
@click.option("--until", required=True, help=WHEN)
@reason_option
def command(given: CommonOptions, until: str, reason: str) -> int:
    """Put the drain of nodes off until a moment, or an earlier deadline.

    `reconciler hold` also keeps a drain from a start at its deadline.
    """

    def asked(scene: Scene) -> InstructionPlan:
        deferral = Deferral(scene.word(until, reason, given.chosen.scope))
        deferred = partial(instruct.deferred, deferral=deferral, prefix=scene.prefix, now=scene.now)
        means = instruct.deferral_means(deferral, given.chosen.words, given.chosen.arguments)
        return InstructionPlan(deferred, means=means, word=deferral.word)

    return carry_out(given, asked, "MaintenanceDeferred")
