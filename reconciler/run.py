"""READ FIRST: one whole pass.

Start at `_decided`, which reads, then `_planned`, which decides; `run_pass` acts, and repeats for nodes that
others have changed meanwhile. Reading begins with a look at the cluster, `outside.reader.look()`:
`kubernetes/reader.py` has the plain way, which is enough to understand a pass, and
`kubernetes/scale/cluster.py` that for thousands of nodes. Both give the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from reconciler import plugins
from reconciler.model.errors import ClusterError
from reconciler.model.explanation import Examination
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.ports import Outside, WritableOutside
from reconciler.model.problems import guarded
from reconciler.model.snapshot import Snapshot
from reconciler.model.values import replace
from reconciler.passes.act import act
from reconciler.passes.assess import assess
from reconciler.passes.causes import with_causes
from reconciler.passes.decide import decide
from reconciler.passes.observe import Rehearsal, observe
from reconciler.passes.parts import Parts, Sources, check_kept_parts
from reconciler.passes.plugin import Feature, Source
from reconciler.passes.preview import add_pods, preview
from reconciler.passes.store import Store
from reconciler.passes.unattended import unattended
from reconciler.report.columns import columns
from reconciler.report.kinds import action_kinds, hold_kinds
from reconciler.settings.schema import Settings

_SOURCES: Mapping[str, Source] = plugins.by_name(
    "source",
    ((plugins.file_of(module), module.SOURCES) for module in plugins.modules("source")),
    lambda source: source.name,
)
_FEATURES: Mapping[str, Feature] = plugins.by_name(
    "feature",
    ((plugins.file_of(module), (module.FEATURE,)) for module in plugins.modules("feature")),
    lambda feature: feature.name,
)
PARTS = Parts(Sources(*_SOURCES.values()), tuple(_FEATURES.values()))
"""Every source and every feature."""

# Two kinds, parts, columns or keys of one name, or one that says nothing to people, are refused before the
# first pass.
hold_kinds()
action_kinds()
check_kept_parts()
columns()
keys_of().on_nodes  # noqa: B018 - they are found when they are asked for first

AGAIN = 2
"""How often a pass decides again about nodes that others change between its read and its write."""


def run_pass(
    outside: WritableOutside, settings: Settings, now: datetime, store: Store | None = None
) -> tuple[Plan, tuple[Outcome, ...]]:
    """Observe, assess, decide and act; return the plan and the result of each action. `now` is aware.

    Nodes that were changed between the read and the write are read and decided again at once.

    With the `store` of earlier passes, the pass decides about what changed; the plan is the same.
    """
    plan = _decided(outside, settings, now, store)
    outcomes = act(plan, outside)
    for _ in range(AGAIN):
        # Others changed these nodes between the read and the write, which wrote nothing.
        changed = {outcome.node for outcome in outcomes if outcome.changed}
        if not changed:
            break
        try:
            later = _decided(outside, settings, now, store)
        except ClusterError:
            # What was done is reported. The next pass says what can't be read.
            break
        nodes = {node.node: node for node in later.nodes if node.node in changed}
        if not nodes:
            break
        moments = [moment for moment in (plan.next_change, later.next_change) if moment is not None]
        plan = replace(
            plan,
            nodes=tuple(nodes.get(node.node, node) for node in plan.nodes),
            next_change=min(moments, default=None),
        )
        done = (outcome for outcome in outcomes if not (outcome.changed and outcome.node in nodes))
        later = replace(later, nodes=tuple(nodes.values()), publications=())
        outcomes = (*done, *act(later, outside))
    return plan, outcomes


def rehearse(outside: Outside, settings: Settings, now: datetime, store: Store | None = None) -> Plan:
    """Observe, assess and decide, and write nothing; `now` is aware. For the `store`, see `run_pass`.

    Read permissions on nodes are enough: the plan says what could not be seen.
    """
    snapshot = observe(outside, settings, now, PARTS, store, Rehearsal.PLAIN)
    return unattended(_planned(snapshot, settings, now, store))


def examine(
    outside: Outside,
    settings: Settings,
    now: datetime,
    *,
    with_preview: bool = False,
    also_pods: bool = False,
) -> Examination:
    """Return what `rehearse` does, with what it has read; for a person, so that no pod is left unread.

    With a preview, the snapshot has the pods of the whole cluster if a node would be drained. With
    `also_pods` it has them anyway.
    """
    rehearsal = Rehearsal.WITH_PREVIEW if with_preview else Rehearsal.ASKED
    snapshot = observe(outside, settings, now, PARTS, rehearsal=rehearsal)
    plan = _planned(snapshot, settings, now)
    if not with_preview:
        return Examination(unattended(plan), snapshot)
    to_drain = [node.node for node in plan.nodes if node.todo.drain is not None]
    snapshot = add_pods(
        snapshot, outside.reader, [node.name for node in snapshot.nodes] if also_pods else to_drain
    )
    return Examination(unattended(preview(plan, snapshot, now)), snapshot)


def as_if(found: Examination, node: Node, settings: Settings) -> Plan:
    """Return the plan of an examination with this node in the place of the one that was read.

    It is that of a reconciler that runs, whether or not one does. Nothing is read again.
    """
    snapshot = found.snapshot
    nodes = tuple(node if read.name == node.name else read for read in snapshot.nodes)
    return _planned(replace(snapshot, nodes=nodes), settings, found.plan.now + snapshot.behind)


def _decided(outside: WritableOutside, settings: Settings, now: datetime, store: Store | None) -> Plan:
    drains = with_causes(outside.drainer.progress(), outside.reader)
    snapshot = replace(observe(outside, settings, now, PARTS, store), drains=drains)
    return _planned(snapshot, settings, now, store)


def _planned(snapshot: Snapshot, settings: Settings, now: datetime, store: Store | None = None) -> Plan:
    settings = settings.with_calendars(snapshot.for_settings.calendars)
    now -= snapshot.behind
    events = assess(snapshot, now)
    if store is None:
        return decide(snapshot, events, settings, now, PARTS)
    plan = decide(*store.settle(snapshot, events, settings, now), settings, now, PARTS)
    guarded("nodes that rest are looked at again", partial(store.keep, plan), None)
    return plan
