"""`reconciler resume`: ends the hold and the deferral of nodes."""

from __future__ import annotations

from functools import partial

import click

from jobs import options
from jobs.runtime import instructing
from jobs.runtime.by_hand import person
from jobs.runtime.environment import Target
from jobs.runtime.instructing import Asked, Chosen, Scene, carry_out, holds_of_many, resume_many
from jobs.runtime.settings_source import SettingsSource
from reconciler.features.approvals.instruct import resumed, resumed_with_many


@click.command("resume")
@instructing.chosen
@options.optional_config
@options.output
@options.cluster
def command(chosen: Chosen, config: SettingsSource | None, output: str, target: Target) -> int:
    """End the hold and the deferral of nodes, whoever gave them.

    --all and --pool end only what was given with the same option.
    """

    def instruct(scene: Scene) -> Asked:
        prefix, now = scene.settings.keys.prefix, scene.now
        if chosen.scope:
            done, over = resume_many(chosen.scope, scene)
            resume = partial(
                resumed_with_many, prefix=prefix, now=now, who=person(), scope=chosen.scope, held=over
            )
            return Asked(resume, done, changed=bool(over))
        return Asked(partial(resumed, prefix=prefix, now=now, who=person(), fleet=holds_of_many(scene)))

    return carry_out(chosen, instruct, "MaintenanceResumed", config, target, output)
