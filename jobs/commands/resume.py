"""`reconciler resume`: ends the hold and the deferral of nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

from jobs import options
from jobs.runtime import instructing
from jobs.runtime.environment import Target
from jobs.runtime.instructing import Chosen, Scene, carry_out
from jobs.runtime.settings_source import SettingsSource
from reconciler.instruct import Instructed, resumed
from reconciler.model.node import Node


@click.command("resume")
@instructing.chosen
@options.optional_config
@options.output
@options.cluster
def command(chosen: Chosen, config: SettingsSource | None, output: str, target: Target) -> int:
    """End the hold and the deferral of nodes, whoever gave them."""

    def instruct(scene: Scene) -> Callable[[Node], Instructed]:
        return partial(resumed, prefix=scene.settings.keys.prefix)

    return carry_out(chosen, instruct, "MaintenanceResumed", config, target, output)
