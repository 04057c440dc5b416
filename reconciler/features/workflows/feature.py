"""What workflows give to a pass. Without workflows in the settings, nothing else of this folder is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reconciler.features.workflows.holds import HOLDS
from reconciler.features.workflows.services import CHANGE_HYPERVISOR, CLAIM, NAME, TAKE_LEASE
from reconciler.features.workflows.settings import PROFILES
from reconciler.model.node import Node
from reconciler.model.ports import Outside
from reconciler.passes.node_facts import Decider, NodeFacts, PassContext
from reconciler.passes.plugin import Deciding, Feature, Observed, Wants
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.features.workflows.reading import ReadForChecks


def _reads(settings: Settings) -> Wants:
    if not PROFILES.of(settings).on:
        return Wants()
    from reconciler.features.workflows.configured import workflows_of

    needs = workflows_of(PROFILES.of(settings)).needs
    return Wants(conditions=needs.conditions, annotations=needs.annotations, labels=needs.labels)


def _observe(outside: Outside, observed: Observed) -> ReadForChecks | None:
    if not PROFILES.of(observed.settings).on:
        return None
    from reconciler.features.workflows.configured import workflows_of
    from reconciler.features.workflows.reading import read_for_checks

    return read_for_checks(outside, workflows_of(PROFILES.of(observed.settings)).needs)


def _decide(nodes: Sequence[NodeFacts], context: PassContext) -> Decider:
    # A record may be left of workflows that the settings had before.
    if not PROFILES.of(context.settings).on and not any(
        claim.kind == CLAIM for node in nodes if node.record for claim in node.record.of_features
    ):
        return Decider()
    from reconciler.features.workflows.decide import NodeWorkflows

    return NodeWorkflows(nodes, context)


def _settled(settings: Settings) -> Callable[[Node], bool] | None:
    if not PROFILES.of(settings).on:
        return None
    from reconciler.features.workflows.settled import settled

    return settled(settings)


FEATURE = Feature(
    NAME,
    HOLDS,
    (TAKE_LEASE, CHANGE_HYPERVISOR),
    claims=(CLAIM,),
    reads=_reads,
    observe=_observe,
    decide=Deciding(_decide, _settled),
)
