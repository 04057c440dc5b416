"""The way from Observe to Enforce: steps of which the program says itself which are done."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from reconciler import plugins
from reconciler.features.observed.cases import Fate
from reconciler.features.observed.summary import Sum
from reconciler.model.findings import KnownFindings, Severity
from reconciler.model.panels import Step
from reconciler.model.permission_kinds import permission_kinds
from reconciler.model.values import replace
from reconciler.settings.schema import Mode, Settings


def steps(
    total: Sum, settings: Settings, readiness: KnownFindings | None, *, simulates: bool
) -> tuple[Step, ...]:
    """Return the steps in their order. The first that is not done says what to type, or to write.

    `readiness` is None where no feature knows it, and `simulates` is whether policies can be tried.
    """
    every = tuple(_steps(total, settings, readiness, simulates=simulates))
    following = next((step for step in every if not step.done), None)
    return tuple(step if step is following else Step(step.title, step.done, step.because) for step in every)


def _steps(
    total: Sum, settings: Settings, readiness: KnownFindings | None, *, simulates: bool
) -> Iterator[Step]:
    if readiness is not None:
        yield _ready(readiness)
    yield _seen(total, simulates=simulates)
    enforces, selects = settings.mode is not Mode.OBSERVE, not settings.node_selector.selects_all
    pools = Counter((case.pool_label, case.pool) for case in total.cases if case.pool_label)
    # The one with the fewest cases: there, least happens.
    label, pool = min(pools, key=lambda name: (pools[name], name), default=("LABEL", "POOL"))
    because = f"the mode is {settings.mode.value}"
    if enforces:
        because = f"{because}, for {f'nodes with {settings.node_selector}' if selects else 'all nodes'}"
    yield Step(
        "Enforce on one pool",
        enforces,
        because,
        ("mode: Enforce", f"nodeSelector: {{{label}: {json.dumps(pool)}}}"),
        "in the settings",
    )
    approval = _permission(settings)
    if approval is not None:
        yield approval
    yield Step(
        "Enforce on all nodes",
        enforces and not selects,
        "nodeSelector still selects some of them" if enforces and selects else because,
        ("mode: Enforce", "nodeSelector: {}"),
        "in the settings",
    )


def _ready(readiness: KnownFindings) -> Step:
    todo = ("reconciler readiness",)
    title = "Nothing keeps a drain from its end"
    part = readiness.part
    if part is None:
        return Step(title, None, readiness.note or "it was not read yet", todo)
    blocks = any(row.severity == Severity.BLOCKS for row in part.rows)
    done = False if blocks else None if part.remarks else True
    return Step(title, done, part.headline, todo)


def _seen(total: Sum, *, simulates: bool) -> Step:
    """Return whether the forecast for what was announced is good; without a case, one can be played."""
    title = "See that drains would be in time"
    bad = total.fates[Fate.MISSED] + total.fates[Fate.BLOCKED]
    good = total.fates[Fate.IN_TIME]
    todo = ("reconciler simulate --made-up 7",) if simulates else ("reconciler plan",)
    if bad or good:
        because = f"{good} of {good + bad} would have been drained in time"
        return Step(title, not bad, because, todo, "what other settings would do" if bad else "")
    return Step(title, False, "no maintenance has come to a drain yet", todo, "play months of it instead")


def _permission(settings: Settings) -> Step | None:
    """Return whether a person permits drains; None if no feature lets anybody do so."""
    keys = {key.key: key for key in settings.policy_keys}
    kind = next((kind for kind in permission_kinds().values() if kind.noun in keys), None)
    if kind is None:
        return None
    asked = [place for place in settings.draining() if keys[kind.noun].in_policy(place[2])]
    kinds = ", ".join(dict.fromkeys(place[1].value for place in asked))
    because = (
        f"required for {kinds}" if asked else f"no drain waits for an {kind.noun}, so none is seen first"
    )
    return Step(
        "Let a person say yes to each drain at first",
        bool(asked),
        because,
        ("events:", f"  Reboot: {{{kind.noun}: true}}"),
        f"in the settings; then `reconciler {kind.command} NODE`",
    )


def with_steps(total: Sum, settings: Settings, readiness: KnownFindings | None) -> Sum:
    """Return the sum with the steps from these settings on; `readiness` as in `steps`."""
    simulates = any("simulate" in getattr(face, "COMMANDS", {}) for face in plugins.faces())
    return replace(total, steps=steps(total, settings, readiness, simulates=simulates))
