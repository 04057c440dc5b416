"""Two files of workflows, each in one line."""

from __future__ import annotations

_CHECKS = (
    '{type: hasLabel, name: one, config: {key: one, value: "true"}}',
    '{type: hasLabel, name: two, config: {key: two, value: "true"}}',
    "{type: maxMaintenance, name: few, config: {max: 1}}",
    "{type: wait, name: rest, config: {duration: 5m}}",
    "{type: stagger, name: turn, config: {duration: 20m, leaseName: turns, leaseNamespace: shop}}",
    "{type: scheduledEvent, name: event}",
    "{type: window, name: open}",
    "{type: budget, name: place}",
    "{type: approved, name: approved}",
    "{type: hooksDone, name: ready}",
    "{type: affinity, name: others, config: {minOperational: 1}}",
    "{type: clusterHealthy, name: healthy, config: {maxNotReady: 1}}",
)
_TRIGGERS = (
    "{type: drain, name: drain, config: {evictionTimeout: 10m}}",
    "{type: cordon, name: cordon}",
    "{type: uncordon, name: uncordon}",
    '{type: alterLabel, name: mark, config: {key: maintained, value: "true"}}',
    "{type: taint, name: repel, config: {key: example.com/works, effect: PreferNoSchedule}}",
    "{type: taint, name: attract, config: {key: example.com/works, effect: PreferNoSchedule, remove: true}}",
)


def _file(first: str, second: str) -> str:
    """Return the line of a file with these two profiles."""
    instances = f"{{check: [{', '.join(_CHECKS)}], trigger: [{', '.join(_TRIGGERS)}]}}"
    return f"profiles: {{instances: {instances}, profiles: [{first}, {second}]}}"


PLAIN = _file(
    "{name: first,"
    " operational: {transitions: [{check: one, trigger: cordon, next: maintenance-required}]},"
    " maintenance-required: {transitions: [{check: one && few, next: in-maintenance},"
    ' {check: "!one", trigger: uncordon, next: operational}]},'
    ' in-maintenance: {enter: drain, transitions: [{check: "!one", trigger: uncordon, next: operational}]}}',
    "{name: second,"
    " operational: {transitions: [{check: two, trigger: drain, next: in-maintenance}]},"
    ' in-maintenance: {enter: cordon, transitions: [{check: "!two", trigger: uncordon, next: operational}]}}',
)
"""Workflows that wait for labels only."""

CAREFUL = _file(
    "{name: first,"
    " operational: {transitions: [{check: one && healthy && !event, next: maintenance-required}]},"
    " maintenance-required: {transitions:"
    " [{check: one && turn && open && place && others, trigger: mark, next: in-maintenance},"
    ' {check: "!one", next: operational}]},'
    " in-maintenance: {enter: repel && drain && attract,"
    ' transitions: [{check: "!one && ready && rest", trigger: uncordon, next: operational}]}}',
    "{name: second,"
    " operational: {transitions: [{check: two, next: maintenance-required}]},"
    " maintenance-required: {transitions: [{check: two && approved, trigger: drain, next: in-maintenance},"
    ' {check: "!two", next: operational}]},'
    " in-maintenance:"
    ' {transitions: [{check: "!two && rest", trigger: uncordon, next: operational}]}}',
)
"""Workflows that ask for what the program knows of nodes, events and people."""
