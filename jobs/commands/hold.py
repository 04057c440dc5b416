"""`reconciler hold`: keeps nodes from a drain until somebody resumes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

from jobs import options
from jobs.runtime import instructing
from jobs.runtime.environment import Target
from jobs.runtime.instructing import Chosen, Scene, carry_out
from jobs.runtime.settings_source import SettingsSource
from reconciler.instruct import Instructed, held
from reconciler.model.instructions import PersonHold
from reconciler.model.node import Node


@click.command("hold")
@instructing.chosen
@instructing.until
@instructing.reason
@click.option("--now", "stops", is_flag=True, help="Also stop a drain that runs: no further pod is evicted.")
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

    A node in maintenance goes on, and is uncordoned after it. With --now its drain stops between two
    evictions. `reconciler resume` ends the hold.
    """

    def instruct(scene: Scene) -> Callable[[Node], Instructed]:
        hold = PersonHold(scene.word(until, reason), stops)
        return partial(held, hold=hold, prefix=scene.settings.keys.prefix, now=scene.now)

    return carry_out(chosen, instruct, "MaintenanceHeld", config, target, output)
