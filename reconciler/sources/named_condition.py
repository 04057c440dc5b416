"""Node conditions that the settings name as a source."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model import limits
from reconciler.model.event import Answer, Kind, Reading, Signal, Status
from reconciler.model.machine import CONDITION
from reconciler.model.node import Node
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.settings.policies import ConditionStatus
from reconciler.settings.schema import ConditionsSection, Settings


class NamedConditions(Source):
    """Conditions that the settings name, such as `KernelDeadlock`."""

    name = "conditions"
    reports_start = False
    who = "the administrator of the node: what writes its conditions? `kubectl describe node {node}`"

    def enabled(self, settings: Settings) -> bool:
        """Whether the settings name any conditions."""
        return bool(settings.condition_types())

    def reading_names(self, settings: Settings) -> Collection[str]:
        """Return a name for each named condition."""
        return [CONDITION + one for one in settings.condition_types()]

    def wants(self, settings: Settings) -> Wants:
        """Return the named conditions."""
        return Wants(conditions=settings.condition_types())

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return a reading per named condition that the node has."""
        return read_named(node, context.settings)


SOURCES = (NamedConditions(),)

SECTIONS = (
    ConditionsSection(
        default={},
        description="Node conditions, by type, that drain the node while they have the named status, without "
        "a deadline; not those of `sources.nodeConditions`. A condition on most nodes drains none "
        "(docs/holds.md#conditiononfewnodes). Default: none.",
    ),
)

_KNOWN = (ConditionStatus.TRUE, ConditionStatus.FALSE)
"""A condition that is Unknown reports an event where the settings name that status, and nothing elsewhere."""


def read_named(node: Node, settings: Settings) -> tuple[Reading, ...]:
    """Return what the named conditions report about a node; an absent condition reports nothing.

    They have no age: the kubelet and node-problem-detector write heartbeats at very different intervals.
    """
    policies, readings = settings.policies(node.labels), []
    for condition_type in sorted(settings.condition_types()):
        condition, policy = node.condition(condition_type), policies.of_condition(condition_type)
        if condition is None:
            continue
        wanted = ConditionStatus.TRUE if policy is None else policy.status
        source = CONDITION + condition_type
        if condition.status == wanted and "transition" in condition.unreadable:
            because = f"the time of {condition_type} is outside of the years 2000 to 2100"
            readings.append(Reading(source, Answer.UNKNOWN, because=because))
        elif condition.status == wanted:
            signal = Signal(
                source,
                Kind.UNKNOWN,
                Status.STARTED,
                description=limits.text(f"{condition_type}: {condition.message or condition.reason}"),
                condition=condition_type,
                since=condition.transition,
            )
            readings.append(Reading(source, Answer.EVENT, (signal,)))
        elif condition.status in _KNOWN:
            readings.append(Reading(source, Answer.NO_EVENT))
        else:
            because = f"{condition_type} is {limits.text(condition.status)}"
            readings.append(Reading(source, Answer.UNKNOWN, because=because))
    return tuple(readings)
