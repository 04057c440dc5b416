"""An example of each check and of each other hold, as docs/holds.md and docs/checks.md quote it.

Most are answers from the tables of the tests of checks, or from the situations of docs/not-drained.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from reconciler.model.drains import DrainProgress, Phase, SlotUse
from reconciler.model.errors import Forbidden
from reconciler.model.holds import (
    DRAIN_SLOT,
    IN_TIME,
    INTERNAL,
    NAMESPACES_READABLE,
    NODE_WRITABLE,
    ONE_PROFILE,
    PODS_READABLE,
    RECORD_READABLE,
)
from reconciler.model.keys import OwnKeys
from reconciler.model.node import Node
from reconciler.model.plan import Hold, NodePlan, Verdict
from reconciler.model.record import CaseRecord, Cordon, DrainRecord, State
from reconciler.model.values import replace
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult
from reconciler.report.document import node_report
from reconciler.report.explain import who_ends
from reconciler.report.kinds import hold_kinds
from reconciler.report.text import shown
from reconciler.run import examine
from tests.docs.situations import NODE, OTHER, SITUATIONS, WIDTH, announced, due, pod
from tests.laws import test_law_19_profiles_share_a_node as profiles
from tests.passes import test_what_a_rehearsal_may_not_see as rights
from tests.profiles import test_checks as checks
from tests.support import builders
from tests.support.builders import NOW, RECORD, minutes
from tests.support.cases import machine
from tests.support.worlds import look, world_of


def plan_on(on: Node, settings: str = "") -> NodePlan:
    """The plan of the node beside another one."""
    plan, _ = look(world_of([on, builders.node(OTHER)], [pod()]), builders.settings(settings))
    return builders.plan_of(plan, NODE)


def _denied() -> NodePlan:
    world, settings = world_of([due(), builders.node(OTHER)], [pod()]), builders.settings()

    def refuse(_before: Node, _after: Node) -> Node:
        raise Forbidden('admission webhook "guard.example.com" denied the request: not today', status=403)

    world.cluster.admission = refuse
    look(world, settings)
    return builders.plan_of(look(world, settings)[0], NODE)


def _without_a_slot() -> NodePlan:
    began = builders.record(drain=DrainRecord(NOW - minutes(10)), events=(builders.known(ids=("A1",)),))
    event = builders.reported(builders.signal(event_id="A1", not_before=NOW + minutes(180)))
    seen = builders.snapshot(
        *(builders.held_node(began, name) for name in "ab"),
        readings=dict.fromkeys("ab", event),
        pods={name: (builders.pod("web", name),) for name in "ab"},
        drains={"b": DrainProgress("b", "uid-b", Phase.RUNNING, slot=SlotUse(True, False, None))},
    )
    return builders.plan_of(builders.planned(seen, builders.settings("drain: {maxConcurrentNodes: 1}")))


def _of_two_profiles() -> NodePlan:
    elsewhere = CaseRecord(State.IN_MAINTENANCE, NOW, cordon=Cordon.OURS, drain=DrainRecord(NOW))
    return profiles.of(builders.held_node(profiles.shared(CaseRecord(), elsewhere)), asks=True)


def _without_pods() -> NodePlan:
    world = rights.asking_world()
    look(world, builders.settings())
    # Another process drains it.
    world.restart()
    rights.forbid(world, ("pods",))
    return builders.plan_of(examine(world.outside, builders.settings(), world.now, with_preview=True).plan)


def _broken() -> NodePlan:
    unknown: Any = None
    node = NodePlan(NODE, "", "", State.OPERATIONAL, State.OPERATIONAL, holds=(unknown,))
    return node_report(node).plan


# The situations of docs/not-drained.md do not have these, and no check has them.
_HOLDS: Mapping[str, Callable[[], NodePlan]] = MappingProxyType(
    {
        DRAIN_SLOT.code: _without_a_slot,
        INTERNAL.code: _broken,
        IN_TIME.code: lambda: plan_on(
            announced("Freeze Started: DurationInSeconds: 9."), "events: {Freeze: {drain: true}}"
        ),
        NAMESPACES_READABLE.code: lambda: builders.plan_of(
            rights.rehearsed(("namespaces",), rights.BY_NAMESPACE)
        ),
        NODE_WRITABLE.code: _denied,
        ONE_PROFILE.code: _of_two_profiles,
        PODS_READABLE.code: _without_pods,
        RECORD_READABLE.code: lambda: plan_on(due(annotations={RECORD: '{"version": 2, "uid": "x"}'})),
    }
)


@cache
def _offers() -> Mapping[str, Situation]:
    """Return the situations of offers of plugins, which the tests of the core need not have."""
    from reconciler.features.machines.replacing import ONE_MORE
    from reconciler.sources.arm.source import SELF_SERVICE
    from reconciler.sources.imds.feature import OFFER
    from tests.features.machines import test_offers as replacing
    from tests.sources.arm import test_offer as arm
    from tests.sources.imds import test_offer as imds

    return {
        "offerDue": replace(imds.shared(imds.MAY_NOT), offers=(OFFER,)),
        "offerAnswered": replace(arm.azure(arm.performed(5)), offers=(SELF_SERVICE,)),
        "preparationDue": replace(replacing.surging(machine()), offers=(ONE_MORE,)),
        "offerRefused": replace(arm.azure(arm.performed(60, 3)), offers=(SELF_SERVICE,)),
    }


def example(code: str) -> str:
    """What the program prints of the hold or the check, and who can end it; a fact holds nothing."""
    own = builders.ask(code, _offers()[code]).who if code in _offers() else ""
    who = f"ask: {who_ends(code, 'NODE', OwnKeys(), who=own)}" if hold_kinds()[code].who else ""
    return shown(filter(None, (f"{_said(code)}  [{code}]", who)), ZoneInfo("UTC"), WIDTH)


def _said(code: str) -> str:
    if code in _holds():
        return next(hold.reason for hold in _holds()[code]().holds if hold.code == code)
    if code in _offers():
        return builders.ask(code, _offers()[code]).words
    for hold in _of_situations():
        if hold.code == code:
            return hold.reason
    answers = [builders.ask(code, situation) for situation, _ in _tables()[code].values()]
    wanted = (Verdict.FAILED, True) if hold_kinds()[code].who else (Verdict.PASSED, False)
    return next(answer.words for answer in answers if (answer.verdict, answer.holds) == wanted)


@cache
def _holds() -> Mapping[str, Callable[[], NodePlan]]:
    """Return what makes each hold that comes from no check, by its code: of the core, and of features."""
    found = dict(_HOLDS)
    for file in sorted((Path(__file__).parents[1] / "features").glob("*/holds.py")):
        found |= import_module(f"tests.features.{file.parent.name}.holds").HOLDS
    return found


@cache
def _tables() -> Mapping[str, Mapping[str, tuple[Situation, CheckResult]]]:
    """The tables of the tests of checks, by the name of the check: of the core, and of features' steps."""
    rows = dict(checks.ANSWERS)
    for file in sorted((Path(__file__).parents[1] / "features").glob("*/test_steps.py")):
        rows |= import_module(f"tests.features.{file.parent.name}.test_steps").ANSWERS
    return rows


@cache
def _of_situations() -> tuple[Hold, ...]:
    return tuple(hold for play in SITUATIONS.values() for hold in play().plan.holds)


if __name__ == "__main__":
    for code in sorted(hold_kinds()):
        print(example(code))
