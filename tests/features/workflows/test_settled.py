"""Which nodes rest: those whose workflows change only with the node itself, by what their checks read."""

from __future__ import annotations

import pytest

from reconciler.features.workflows.settled import settled
from tests.support import builders
from tests.support.worlds import look, world_of

PROFILES = """profiles:
  instances:
    check:
    - {{type: {type}, name: asked, config: {config}}}
    - {{type: hasLabel, name: absent, config: {{key: x}}}}
    trigger: [{{type: cordon, name: cordon}}]
  profiles:
  - name: default
    operational: {{transitions: [{{check: "absent && asked", next: in-maintenance}}]}}
    in-maintenance: {{enter: cordon}}
"""


@pytest.mark.parametrize(
    ("kind", "config", "rests"),
    [
        ("hasLabel", "{key: example.com/reboot}", True),
        ("hasAnnotation", "{key: example.com/reboot}", True),
        ("condition", "{type: Bad, status: 'True'}", True),
        ("anyLabel", "{key: example.com/reboot}", False),
        ("maxMaintenance", "{max: 1}", False),
        ("wait", "{duration: 5m}", False),
        ("window", "{}", False),
        ("checkHypervisor", "{evicted: 'true'}", False),
    ],
)
def test_a_node_rests_only_if_each_check_reads_nothing_else(kind: str, config: str, rests: bool) -> None:
    world = world_of([builders.node("a")])
    policy = builders.settings(PROFILES.format(type=kind, config=config))
    for _ in range(2):
        look(world, policy)

    assert settled(policy)(world.cluster.nodes["a"]) is rests
