"""`reconciler defer`: puts the drain of nodes off until a moment, or until their deadline."""

from __future__ import annotations

from functools import partial

import click

from jobs import options
from jobs.runtime import instructing
from jobs.runtime.environment import Target
from jobs.runtime.instructing import Asked, Chosen, Scene, carry_out
from jobs.runtime.settings_source import SettingsSource
from reconciler.features.approvals.instruct import deferred
from reconciler.model.instructions import Deferral


@click.command("defer")
@instructing.chosen
@click.option(
    "--until",
    required=True,
    help="When it ends: +2h, a date and time in the time zone of the settings, or RFC 3339.",
)
@instructing.reason
@options.optional_config
@options.output
@options.cluster
def command(
    chosen: Chosen,
    until: str,
    reason: str,
    config: SettingsSource | None,
    output: str,
    target: Target,
) -> int:
    """Put the drain of nodes off until a moment, or until a deadline that comes first.

    `reconciler hold` also keeps a drain from a start at its deadline.
    """

    def instruct(scene: Scene) -> Asked:
        deferral = Deferral(scene.word(until, reason, chosen.scope))
        defer = partial(deferred, deferral=deferral, prefix=scene.settings.keys.prefix, now=scene.now)
        return Asked(defer, keeps=deferral.word)

    return carry_out(chosen, instruct, "MaintenanceDeferred", config, target, output)
