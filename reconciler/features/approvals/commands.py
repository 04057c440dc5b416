"""`reconciler approve`: approves the drains that wait for it, or withdraws the approval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import click

from jobs import options
from jobs.runtime import instructing
from jobs.runtime.environment import Target
from jobs.runtime.instructing import Asked, Chosen, Scene, carry_out
from jobs.runtime.outside import Wiring
from jobs.runtime.settings_source import SettingsSource
from reconciler.features.approvals.instruct import Instructed, approved, approved_as_recorded, unapproved
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.run import rehearse


@click.command("approve")
@instructing.chosen
@instructing.until
@instructing.reason
@click.option("--cancel", is_flag=True, help="Withdraw the approval.")
@options.optional_config
@options.output
@options.cluster
def approve(
    chosen: Chosen,
    until: str | None,
    reason: str,
    cancel: bool,
    config: SettingsSource | None,
    output: str,
    target: Target,
) -> int:
    """Approve the drains for the events that are reported now, or withdraw the approval.

    A node that is named is also approved for its workflows, if the settings have a check `approved`.
    Without --config, the events are those that the last pass recorded.
    """
    if cancel and (until is not None or reason):
        raise click.UsageError("--cancel withdraws the approval; give neither --until nor --reason with it")

    def instruct(scene: Scene) -> Asked:
        if cancel:
            return Asked(partial(unapproved, prefix=scene.settings.keys.prefix))
        word, named = scene.word(until, reason), bool(chosen.names)
        if config is None:
            prefix = scene.settings.keys.prefix
            approve = partial(approved_as_recorded, word=word, prefix=prefix, now=scene.now, workflows=named)
            return Asked(partial(_approve_recorded, named=named, approve=approve))
        outside = Wiring(scene.connection, target).to_read(scene.settings)
        plans = {one.node: one for one in rehearse(outside, scene.settings, scene.now).nodes}
        prefix = scene.settings.keys.prefix
        asks = named and any(one.type == "approved" for one in scene.settings.profiles.instances.check)
        with_plan = partial(approved, word=word, prefix=prefix, now=scene.now, workflows=asks)
        return Asked(partial(_approve, plans=plans, named=named, approve=with_plan))

    return carry_out(chosen, instruct, "MaintenanceApproved", config, target, output)


def _approve_recorded(node: Node, named: bool, approve: Callable[[Node], Instructed]) -> Instructed:
    found = approve(node)
    return found if named or not found.refused else Instructed(found.done, idle=True)


def _approve(
    node: Node,
    plans: Mapping[str, NodePlan],
    named: bool,
    approve: Callable[[Node, NodePlan | None], Instructed],
) -> Instructed:
    plan = plans.get(node.name)
    if not named and not (plan is not None and any(one.kept.approval for one in plan.events)):
        return Instructed("nothing waits for an approval", idle=True)
    return approve(node, plan)
