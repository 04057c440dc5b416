"""What the instructions of people, a missing permission, other tools and nodes make of a judged event.

They move its earliest start: to the moment at which they end, or out of reach. The schedule plans with the
same moments, so that its forecast comes true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache

from msgspec import Struct

from reconciler.calendar.occurrences import FOREVER
from reconciler.model.instructions import Instructions, Kept, Wait
from reconciler.model.keys import OwnKeys
from reconciler.model.node import AUTOSCALER_TAINT, DISRUPTED_TAINT, Node
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import CaseRecord
from reconciler.model.schedule import Exemption, StartTimes
from reconciler.model.values import replace
from reconciler.settings.draining import AksRemediator
from reconciler.settings.policies import EventPolicy
from reconciler.settings.schema import Settings
from reconciler.starts.times import NEAR


@cache
def _waits_of_features() -> Mapping[str, WaitOfFeature]:
    # The checks import this module.
    from reconciler.profiles.checks import CHECKS

    return {name: check.type.wait for name, check in CHECKS.items() if check.type.wait is not None}


class Said(Struct, frozen=True):
    """What people say about a node, and the case and the moment (UTC) for which it counts."""

    instructions: Instructions
    case: CaseRecord
    node: Node
    now: datetime
    keys: OwnKeys


WaitOfFeature = Callable[[Said, JudgedEvent, EventPolicy, datetime | None], Wait | None]
"""What the `wait` of a check is: it returns for what a start for the event waits, None for nothing.

It gets what people say, the event, its policy, and from when on (UTC) the event demands a drain. None: never.
"""


def instructed(judged: JudgedEvent, policy: EventPolicy | None, said: Said) -> JudgedEvent:
    """Return the event with what it waits for, and with its later start.

    A hold wins over the deadline, because a person said so. A deferral does not. What the deadline does to
    the wait of a feature, the feature says.
    """
    times = judged.times
    if times is None or policy is None:
        return judged
    # A plan that requires nothing yet has only its deadline.
    demanded = judged.lost_from if judged.asks else judged.deadline
    kept = Kept(_hold(said))
    if judged.waiver is None:
        of_features = (
            (name, ask(said, judged, policy, demanded)) for name, ask in _waits_of_features().items()
        )
        kept = replace(
            kept,
            deferral=_deferral(said, demanded),
            of_features={name: wait for name, wait in of_features if wait is not None},
        )
    return _kept(judged, times, kept, said.now)


AUTOSCALER_DELETES = f"the cluster autoscaler is deleting the node (taint {AUTOSCALER_TAINT})"


def others_at_work(judged: JudgedEvent, node: Node, settings: Settings, upgrade: str) -> tuple[str, ...]:
    """Return in words what other tools do with the node, which the drain for this event leaves to them.

    `upgrade` is what AKS upgrades that concerns the node, empty if nothing.
    """
    leave = settings.coexist.aks_remediator is AksRemediator.LEAVE
    work = {
        upgrade: bool(upgrade),
        AUTOSCALER_DELETES: node.has_taint(AUTOSCALER_TAINT),
        "AKS's remediator is working on the node (coexist.aksRemediator is Leave)": leave
        and bool(node.remediator_taint),
        f"Karpenter is replacing the node (taint {DISRUPTED_TAINT})": settings.waits_for_karpenter(
            judged.event, node
        ),
    }
    return tuple(words for words, applies in work.items() if applies)


def waits_for_others_until(judged: JudgedEvent) -> datetime | None:
    """Return until when a drain for the event waits for other tools (UTC): its latest start.

    None if it has no date. Two that drain at a time are too many. But a tool may have failed, and from then
    on the drain would come too late.
    """
    latest = judged.times.latest if judged.times is not None else None
    demanded = judged.lost_from if judged.asks else judged.deadline
    return min((at for at in (latest, demanded) if at is not None), default=None)


def beside_others(judged: JudgedEvent, work: Sequence[str], now: datetime) -> JudgedEvent:
    """Return the event with a start that waits for other tools; `work` says what they do, `now` is UTC."""
    times, until = judged.times, waits_for_others_until(judged)
    if not work or times is None or (until is not None and until <= now):
        return judged
    return _kept(judged, times, replace(judged.kept, tools=Wait("; ".join(work), until)), now)


def beside_most(judged: JudgedEvent, common: Mapping[str, str], now: datetime) -> JudgedEvent:
    """Return the event with a start that waits while its condition is on most nodes; `now` is aware, UTC.

    `common` says so in words, by the types of such conditions.
    """
    because = common.get(judged.event.condition)
    if because is None or judged.times is None:
        return judged
    kept = _kept(judged, judged.times, replace(judged.kept, common=Wait(because)), now)
    # The drain for another event of the node waits for what that event waits for.
    return kept if judged.waiver is None else replace(kept, exempt=Exemption())


def beside_older(judged: JudgedEvent, yields_to: str, now: datetime) -> JudgedEvent:
    """Return the event with a start that is left to an older reconciler, with its lock in this namespace.

    `yields_to` is empty without one; `now` is aware, UTC. Two that start drains at a time take twice the
    places.
    """
    if judged.times is None or not yields_to:
        return judged
    return _kept(judged, judged.times, replace(judged.kept, other=Wait(older_acts(yields_to))), now)


def older_acts(namespace: str) -> str:
    """Return in words that an older reconciler acts on the nodes."""
    return f"an older reconciler acts on these nodes, with its lock in namespace {namespace}"


def _kept(judged: JudgedEvent, times: StartTimes, kept: Kept, now: datetime) -> JudgedEvent:
    if not kept.waits:
        return judged
    begins = max(wait.until or FOREVER for wait in kept.waits)
    because = "; ".join(wait.because for wait in kept.waits)
    return replace(_later(judged, times, begins, because, now), kept=kept)


def beside_other_vms(judged: JudgedEvent, begins: datetime, because: str, now: datetime) -> JudgedEvent:
    """Return the event with a start that waits for the node of another of its VMs, which begins then.

    The moments are UTC. Azure starts the event once all of them are drained. What a person began waits for
    none of them.
    """
    if judged.times is None or judged.waiver is not None:
        return judged
    return _later(judged, judged.times, begins, because, now)


def _later(
    judged: JudgedEvent, times: StartTimes, begins: datetime, because: str, now: datetime
) -> JudgedEvent:
    times = replace(times, earliest=max(times.earliest, begins), kept=because)
    return replace(
        judged,
        times=times,
        may_start=judged.may_start and times.earliest <= now,
        far=now < times.earliest - NEAR,
    )


def case_of(case: CaseRecord) -> datetime | None:
    """Return when a pass announced the case of a node (UTC), None if the node has none."""
    return case.facts.announced or (case.since if case.open else None)


def _hold(said: Said) -> Wait | None:
    hold = said.instructions.hold
    return Wait(hold.words(said.node.name), hold.word.until) if hold is not None else None


def _deferral(said: Said, demanded: datetime | None) -> Wait | None:
    deferral = said.instructions.deferral
    if deferral is None:
        return None
    until = min((at for at in (deferral.word.until, demanded) if at is not None), default=None)
    ended = until is not None and until <= said.now
    return None if ended else Wait(deferral.words(said.node.name), until)
