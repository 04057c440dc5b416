"""`reconciler hold`: keeps nodes from a drain until somebody resumes them."""

from __future__ import annotations

from functools import partial

import click

from jobs import options
from jobs.runtime import instructing
from jobs.runtime.environment import Target
from jobs.runtime.instructing import Asked, Chosen, Scene, carry_out, hold_many
from jobs.runtime.settings_source import SettingsSource
from reconciler.features.approvals.instruct import Instructed, held, stopped
from reconciler.model.instructions import PersonHold
from reconciler.model.node import Node


@click.command("hold")
@instructing.chosen
@instructing.until
@instructing.reason
@click.option("--now", "stops", is_flag=True, help="Also stop a drain that runs.")
@options.optional_config
@options.output
@options.cluster
def command(
    chosen: Chosen,
    until: str | None,
    reason: str,
    stops: bool,
    config: SettingsSource | None,
    output: str,
    target: Target,
) -> int:
    """Hold nodes: no drain of them begins, not even at a deadline.

    --all and --pool also hold nodes that join later. A node in maintenance goes on, and is uncordoned after
    it. `reconciler resume` ends the hold.
    """

    def instruct(scene: Scene) -> Asked:
        hold = PersonHold(scene.word(until, reason, chosen.scope), stops)
        prefix = scene.settings.keys.prefix
        if not chosen.scope:
            return Asked(partial(held, hold=hold, prefix=prefix, now=scene.now), keeps=hold.word)
        done = hold_many(hold, scene)
        on = partial(stopped, hold=hold, prefix=prefix) if stops else _nothing
        return Asked(on, done, changed=True, keeps=hold.word)

    return carry_out(chosen, instruct, "MaintenanceHeld", config, target, output)


def _nothing(node: Node) -> Instructed:
    return Instructed(f"{node.name} goes on", idle=True)
