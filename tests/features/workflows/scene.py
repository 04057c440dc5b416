"""A cluster as a check of a workflow sees it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.data import ProfileData, WorkflowData
from reconciler.features.workflows.reading import ReadForChecks
from reconciler.features.workflows.situation import Fleet, Member, WorkflowSituation
from reconciler.model.node import Node
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.profiles.vocabulary import CheckResult
from tests.support.builders import NOW, node

PROFILE = "os"


def member(
    name: str,
    state: State = State.OPERATIONAL,
    *,
    profile: str = PROFILE,
    labels: Mapping[str, str] | None = None,
    since: datetime = NOW - timedelta(hours=1),
) -> Member:
    """A node with one profile."""
    data = WorkflowData({profile: ProfileData(since, state, state)})
    return Member(node(name, labels=labels), data, (profile,))


def given(
    *others: Member,
    node: Node = node("a"),  # noqa: B008 - a frozen value
    state: State = State.REQUIRED,
    since: datetime = NOW - timedelta(hours=1),
    now: datetime = NOW,
    read: ReadForChecks | None = None,
) -> WorkflowSituation:
    """What a check reads about the node, in a cluster with these other nodes."""
    data = WorkflowData({PROFILE: ProfileData(since, state, state)})
    own = Member(node, data, (PROFILE,))
    return WorkflowSituation(
        node=node,
        data=data,
        profile=PROFILE,
        state=state,
        since=since,
        now=now,
        members=Fleet(sorted((own, *others), key=lambda one: one.node.name)),
        read=read or ReadForChecks(),
    )


def at(scene: WorkflowSituation, now: datetime) -> WorkflowSituation:
    """The same at another moment."""
    return replace(scene, now=now)


def config(kind: str, **keys: object) -> Any:
    """The configuration of a check as a file with these keys gives it."""
    return CHECK_TYPES[kind].config.model_validate(keys, by_alias=True, by_name=False)


def ask(kind: str, scene: WorkflowSituation, **keys: object) -> CheckResult:
    """The answer of a check with this configuration."""
    return CHECK_TYPES[kind].ask(config(kind, **keys), scene)
