"""The drain of one node as a state machine: events and the time go in, commands come out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct, field

from reconciler.calendar.values import format_duration
from reconciler.drain.drainer.messages import (
    CheckNode,
    Command,
    Delete,
    Evict,
    Limits,
    ListAttachments,
    ListPods,
    Restart,
    Write,
    WriteDone,
)
from reconciler.drain.drainer.parts import (
    TRY_AGAIN,
    Alarm,
    CordonReads,
    Former,
    Holding,
    Needs,
    PodsOnNode,
    Requests,
    Returns,
    Slot,
    Stage,
    Tracked,
    Volumes,
)
from reconciler.drain.drainer.requests import (
    EvictionRefusal,
    RefusalMeaning,
    read_refusal,
    two_budgets,
    waits_for,
)
from reconciler.drain.drainer.shared import PdbTracker, Places
from reconciler.drain.filters import (
    Action,
    PodDeleteStatus,
    Tier,
    judge,
    one_too_many,
    returns_because,
    summarise,
)
from reconciler.drain.refusal import asks, may_be_restarted, never_allows, would_refuse
from reconciler.model.drains import (
    MOST_SEEN,
    Blocker,
    DrainOrder,
    DrainProgress,
    Phase,
    Refused,
    Seen,
    SlotUse,
    longest,
)
from reconciler.model.errors import Forbidden, NotFound, ReconcilerError, Rejected, Unreachable
from reconciler.model.instructions import stopping_hold
from reconciler.model.moments import shifted, to_text
from reconciler.model.node import Node
from reconciler.model.pod import Pod, PodDisruptionBudget, claims_of, grace_seconds, grace_text
from reconciler.model.ports import Listed, PodChange, PodGone
from reconciler.model.values import replace

# A granted eviction sets the deletion timestamp at once. A pod without one after this time was kept by a
# webhook, and is evicted again.
_SPARED_AFTER = timedelta(seconds=60)

# A restart that takes longer counts as blocked.
_RESTARTED_WITHIN = timedelta(seconds=60)

JUST_DONE = timedelta(seconds=5)
"""How long the pods count that a drain has listed at its end."""

AWAITED = timedelta(seconds=60)
"""How long the next tier waits for a pod that neither a budget nor a webhook refuses."""

AHEAD = timedelta(minutes=2)
"""A pod whose turn has not come goes so long before its grace period only just fits."""


def stops(found: Node, order: DrainOrder, now: datetime) -> str:
    """Return in words which hold stops the drain at `now` (UTC), empty if none does."""
    return "" if order.options.ignore_holds else stopping_hold(found, order.options.prefix, now)


class NodeDrain(Struct):
    """One attempt at one node. `number` distinguishes its answers from those of earlier attempts."""

    order: DrainOrder
    number: int
    limits: Limits
    phase: Phase = Phase.RUNNING
    error: str = ""
    finished: datetime | None = None
    now: datetime | None = None
    pods: PodsOnNode = field(default_factory=PodsOnNode)
    cordon: CordonReads = field(default_factory=CordonReads)
    volumes: Volumes = field(default_factory=Volumes)
    slot: Slot = field(default_factory=Slot)
    former: Former = field(default_factory=Former)
    needs: Needs = field(default_factory=Needs)
    requests: Requests = field(default_factory=Requests)
    alarm: Alarm = field(default_factory=Alarm)
    holding: Holding = field(default_factory=Holding)

    def __post_init__(self) -> None:
        """Go on from what earlier processes have seen of the attempt."""
        seen = self.order.seen
        self.volumes.empty_since, self.slot.blocked_since = seen.emptied, seen.blocked
        self.requests.refused_since = {one.of: one.at for one in seen.refused}
        self.pods.returns = Returns.after(seen.returned, self.order.options.comebacks.begun)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.phase is Phase.RUNNING

    @property
    def _seen(self) -> Seen:
        """What another process would have to know."""
        if not self.pods.looked:
            return self.order.seen
        now, slot = self.now or self.order.since, self.slot
        # A drain that makes progress is blocked for moments.
        blocked = slot.blocked_since is not None and now >= slot.blocked_since + self.limits.slot_kept
        emptied = self.volumes.empty_since if self.volumes.left else None
        pods = self.pods.remaining()
        denied = {pod.pod.uid: pod.denied_since for pod in pods if pod.denied_since is not None}
        return Seen(
            emptied=emptied.replace(microsecond=0) if emptied is not None else None,
            blocked=slot.blocked_since.replace(microsecond=0) if blocked and slot.blocked_since else None,
            denied=longest(denied),
            refused=longest(self.requests.refused_since),
            returned=self.pods.returns.counted,
        )

    def continue_after(self, former: NodeDrain) -> None:
        """Count on from a run of the same attempt that has ended, or from the attempt that timed out before.

        A pass that still saw an attempt run orders it again.
        """
        same = former.order.since == self.order.since
        if former.phase is Phase.TIMED_OUT or (same and former.phase is Phase.DRAINED):
            # In both the node was cordoned all the time.
            self.pods.returns.continue_after(former.pods.returns, frozenset(former.pods.had))
        if not same:
            return
        self.pods.had = set(former.pods.had)
        self.former.had = frozenset(former.pods.had)
        self.former.evicted = former.former.evicted | former.requests.evicted
        self.former.drained = former.finished if former.phase is Phase.DRAINED else None
        self.holding = former.holding

    # Events.

    def see(self, change: PodChange, now: datetime) -> None:
        """Handle one event of the pod watch."""
        match change:
            case Listed():
                if not self.pods.listed:
                    # Pods that are not in the list have disappeared while there was no watch.
                    self.pods.forget_all_but(self.pods.in_this_watch)
                self.pods.listed, self.pods.at_start, self.pods.read_at = True, False, now
            case PodGone(uid):
                if self.pods.remove(uid):
                    self.slot.progress_at = now
            case pod:
                if not self.pods.listed:
                    # It comes from the watch's list, which is newer than all earlier events.
                    self.pods.gone.discard(pod.uid)
                if pod.uid in self.pods.gone:
                    # A late event. A UID never comes back.
                    return
                self.pods.in_this_watch.add(pod.uid)
                self.pods.seen_since_read.add(pod.uid)
                self._see_pod(pod, now, listed=not self.pods.listed)

    def see_node(self, found: Node | None, now: datetime, at: datetime | None = None) -> None:
        """Handle the answer to CheckNode; `at` is when a read of others was sent, None for its own."""
        asked = self.cordon.answered() or now
        if found is None:
            self.end(Phase.NODE_GONE, now, "the node no longer exists")
        elif found.uid != self.order.uid:
            self.end(Phase.NODE_GONE, now, "another node has this name now")
        elif not found.unschedulable:
            self.end(Phase.STOPPED, now, "the node is no longer cordoned")
        elif held := stops(found, self.order, now):
            self.end(Phase.STOPPED, now, held)
        else:
            # The node was cordoned when the request was sent; it may have changed before the answer.
            self.cordon.seen_at = asked if at is None else min(asked, at)
            self.cordon.last_read = self.cordon.reads
            self._readable()
            self.cordon.ready = found.ready if found.condition("Ready") is not None else None

    def node_unread(self, error: ReconcilerError, now: datetime) -> None:
        """Handle a failed CheckNode. The drain pauses until the node can be read."""
        self.cordon.asked_at = None
        self.cordon.seen_at = None
        self._unreadable(f"the node can't be read: {error}")
        self._attempt_later(now)

    def see_pods(self, pods: tuple[Pod, ...], now: datetime) -> None:
        """Handle a consistent list of the pods. It shows what the watch has missed, and whether none is left.

        The watch may have reported changes since the list was requested. Those count, because a UID that is
        gone never comes back, and a pod that is too new for the list is there.
        """
        self.pods.listing = self.pods.at_start = False
        self._readable()
        listed = {pod.uid for pod in pods}
        self.pods.forget_all_but(listed | self.pods.seen_since_read)
        self.pods.gone -= listed - self.pods.gone_since_read
        for pod in pods:
            if pod.uid not in self.pods.gone:
                self._see_pod(pod, now, listed=pod.uid not in self.pods.seen_since_read)
        self.pods.listed = True
        # A list that shows a pod that is gone is too old to show that no other pod is left.
        self.pods.confirmed = not self.pods.remaining() and not listed & self.pods.gone_since_read

    def pods_unread(self, error: ReconcilerError, now: datetime) -> None:
        """Handle a failed ListPods. The node may not be empty."""
        self.pods.listing = False
        self._unreadable(f"the pods can't be read: {error}")
        self._attempt_later(now)

    def see_attachments(self, names: tuple[str, ...], now: datetime) -> None:
        """Handle the list of attached volumes."""
        self.volumes.asked = False
        self.volumes.left = names
        self.volumes.next_at = now + self.limits.attachments_every
        since = self.volumes.empty_since or now
        if not names or now >= since + self.limits.attachments:
            self.end(Phase.DRAINED, now)

    def attachments_unread(self, error: ReconcilerError, now: datetime) -> None:
        """Handle a failed ListAttachments. The limit for this wait applies too.

        A person who drains by hand may lack the right to list them, and waits only if a pod has left.
        """
        if isinstance(error, Forbidden) and self.order.case is None and not self.pods.gone:
            self.end(Phase.DRAINED, now)
            return
        self.see_attachments((f"unknown ({error})",), now)

    def written(self, answer: WriteDone, pdbs: PdbTracker, now: datetime) -> str:
        """Handle the answer to a write. Return the reason to stop all drains, or an empty text."""
        uid, error, restarted = answer.write.pod.uid, answer.error, answer.restarted
        self.requests.in_flight.discard(uid)
        pdbs.release(uid)
        tracked = self.pods.tracked.get(uid)
        if error is not None and not isinstance(error, Unreachable):
            # Without an answer, the write may have succeeded.
            self.requests.stages.pop(uid, None)
        if tracked is None:
            # The pod is gone, and the watch was faster than the answer.
            if error is None and not restarted:
                self.requests.evicted.add(uid)
            return ""
        if error is not None:
            return self._refused(tracked, answer.write, error, pdbs, now)
        tracked.failures, tracked.because, tracked.budget, tracked.retry_at = 0, "", "", None
        tracked.denied_by = ""
        self.requests.refused_since.pop(tracked.pod.namespace, None)
        tracked.asked_at = now
        if not tracked.late:
            self.slot.progress_at = now
        if restarted:
            tracked.stage = Stage.RESTARTED
            tracked.because = (
                f"waits for the restart of {restarted}: the new pod starts on another node first"
            )
        else:
            if uid not in self.requests.evicted:
                pdbs.spent(tracked.pod)
            tracked.stage = Stage.LEAVING
            if tracked.judged.action is not Action.KEEP:
                self.requests.evicted.add(uid)
        return ""

    def uids(self) -> tuple[str, ...]:
        """Return the UIDs of the pods that it knows."""
        return tuple(self.pods.tracked)

    def end(self, phase: Phase, now: datetime, error: str = "") -> None:
        """End the drain."""
        if self.running:
            # If there was nothing left to do, the drain has ended already, and it counts as one.
            again = phase is Phase.DRAINED and self.pods.had == self.former.had
            finished = (self.former.drained or now) if again else now
            self.phase, self.finished, self.error = phase, finished, error
            self.holding.note(frozenset(), now)
            self.alarm.wake = None

    def _readable(self) -> None:
        if self.running:
            self.error = ""

    def _unreadable(self, because: str) -> None:
        # A late answer must not replace the reason why the drain has ended.
        if self.running:
            self.error = because

    def hurry(self, now: datetime) -> None:
        """Retry everything now, because the clock went back: no moment of this drain may be in the future."""
        if not self.running:
            return
        self.cordon.seen_at = None
        for part in (self.pods, self.volumes, self.slot, self.requests, self.alarm):
            part.hurry(now)

    # Commands.

    def advance(self, pdbs: PdbTracker, places: Places | None, now: datetime) -> list[Command]:
        """Return the commands, with writes that find `places`. Set `alarm.wake` and what it `needs`.

        Without `places` no write is sent now. A drain that needs a slot evicts only while it holds one. It
        takes one if `slot.free`, else it sets `slot.awaited`. It gives the slot back when it is blocked.
        """
        self.now = now
        if not self.running:
            return []
        self.alarm.moments.clear()
        self.needs.refused_by.clear()
        self.needs.places.clear()
        self.slot.awaited = False
        commands = list(self._advance(pdbs, places, now))
        if self.running:
            self._count_progress(now)
        self.alarm.wake = min(self.alarm.moments, default=None) if self.running else None
        return commands

    def watched_pods(self, now: datetime) -> tuple[Pod, ...] | None:
        """Return all pods of the node, sorted; None before the watch has listed them, and after its end.

        A drain that is done has listed them last, so they count until `JUST_DONE` later.
        """
        finished = self.finished if self.phase is Phase.DRAINED else None
        just_done = finished is not None and timedelta() <= now - finished <= JUST_DONE
        if not self.pods.listed or not (self.running or just_done):
            return None
        pods = (tracked.pod for tracked in self.pods.tracked.values())
        return tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name)))

    def progress(self) -> DrainProgress:
        """Return the progress."""
        now = self.now or self.order.since
        seen = summarise(tracked.judged for tracked in self.pods.tracked.values())
        remaining = {tracked.pod.uid for tracked in self.pods.remaining()}
        blockers = () if self.phase is Phase.DRAINED else tuple(self._blockers(now))
        attached: tuple[str, ...] = ()
        if self.phase is Phase.DRAINED and self.volumes.left:
            attached = (f"still attached: {', '.join(self.volumes.left)}",)
        slot, use = self.slot, SlotUse()
        if self.running:
            held = self.order.slots is not None and (slot.held or self._begins)
            # Pods that leave may be late, and then stay.
            begins = slot.blocked_since or slot.blocked_at
            counts = shifted(begins, self.limits.slot_kept) if begins is not None else None
            use = SlotUse(held, slot.awaited, slot.blocked_since, slot.blocked_at, counts)
        return DrainProgress(
            node=self.order.node,
            uid=self.order.uid,
            phase=self.phase,
            total=len(self.pods.had),
            gone=len(self.pods.had - remaining),
            evicted=len(self.former.evicted | self.requests.evicted),
            kept=(*seen.kept, *seen.refused),
            blockers=blockers,
            warnings=(*seen.warnings, *attached),
            escalations=tuple(self._escalations(blockers, now)),
            error=self.error,
            finished=self.finished,
            since=self.order.since,
            slot=use,
            returned=frozenset(uid for uid in self.pods.returns.left if uid in self.pods.tracked),
            coming=self.pods.returns.coming,
            seen=self._seen if self.running else Seen(),
            spells=self.holding.spells,
        )

    @property
    def _begins(self) -> bool:
        """Whether it has not seen yet what there is to evict."""
        return not self.pods.looked and not self.error

    def _count_progress(self, now: datetime) -> None:
        """Note since when it is blocked, and give its slot back if it is.

        Only the pods of its start hold the slot. What comes later, people can send without end.
        """
        remaining = [tracked for tracked in self.pods.tracked.values() if tracked.remains]
        first = [tracked for tracked in remaining if not tracked.late]
        queued = (tracked for tracked in remaining if tracked.stage is Stage.QUEUED)
        self.holding.note({tracked.budget for tracked in queued if tracked.budget}, now)
        self.slot.blocked_at = self._late_at(first)
        leaves = self.slot.blocked_at is not None and not self.alarm.due(self.slot.blocked_at, now)
        goes_on = leaves or self._begins or (not remaining and not self.error)
        if not self._begins:
            self.slot.blocked_since = None if goes_on else self.slot.blocked_since or now
        # A budget that allows one eviction at a time does not cost the slot after each of them.
        kept_until = (
            self.slot.progress_at + self.limits.slot_kept if self.slot.progress_at is not None else now
        )
        kept = bool(first) and self.slot.held and not self.alarm.due(kept_until, now)
        if not leaves:
            self.slot.blocked_at = kept_until if kept else None
        # An eviction that a webhook keeps hanging costs the slot, as one that a budget refuses does.
        sent = self.slot.held and bool(self.requests.in_flight) and self.slot.sent_at is not None
        hangs = sent and self.alarm.due((self.slot.sent_at or now) + self.limits.slot_kept, now)
        reads = bool(first) and self.cordon.asked_at is not None and not self.cordon.for_late
        asks = (sent and not hangs) or reads
        self.slot.held = self.slot.held and (goes_on or kept or asks)

    def _late_at(self, remaining: list[Tracked]) -> datetime | None:
        """Return when the last pod that is on its way is late (UTC), None if there is none.

        A pod that is late may never leave. A pod whose eviction a webhook denies is moved by its controller.
        """
        until = self._until()
        moments: list[datetime | None] = [
            gone
            for tracked in remaining
            if (gone := self._gone_at(tracked)) is not None and (until is None or gone <= until)
        ]
        moments += [self._denied_until(tracked) for tracked in remaining]
        moments += [
            tracked.asked_at + _RESTARTED_WITHIN
            for tracked in remaining
            if tracked.stage is Stage.RESTARTED and tracked.asked_at is not None
        ]
        return max((at for at in moments if at is not None), default=None)

    def _until(self) -> datetime | None:
        """Return until when this attempt helps the node (UTC): until its timeout, or its deadline.

        An attempt that began after the deadline has only the timeout. None: by hand, without a timeout.
        """
        order, deadline = self.order, self.order.escalation.deadline
        ends = shifted(order.since, order.timeout) if order.timeout is not None else None
        if deadline is None or deadline <= order.since:
            return ends
        return deadline if ends is None else min(ends, deadline)

    def _denied_until(self, tracked: Tracked) -> datetime | None:
        """Return from when a pod counts as blocked that a webhook keeps (UTC), None if no webhook does."""
        if not tracked.denied_by or tracked.denied_since is None:
            return None
        return shifted(tracked.denied_since, self.order.may_be_denied)

    def _may_evict(self, tracked: Tracked) -> bool:
        """Return whether it needs no slot or holds one; take one if one is free.

        If only late pods are left, they need none.
        """
        pods = self.pods.tracked.values()
        if self.order.slots is None or (tracked.late and all(pod.late for pod in pods if pod.remains)):
            return True
        return self.slot.take()

    def _advance(self, pdbs: PdbTracker, places: Places | None, now: datetime) -> Iterator[Command]:
        timeout = self.order.timeout
        if timeout is not None and self.alarm.due(shifted(self.order.since, timeout), now):
            self.end(Phase.TIMED_OUT, now, f"not drained within {format_duration(timeout)}")
            return
        loud = self.order.escalation.warn_after
        if loud is not None:
            self.alarm.due(shifted(self.order.since, loud), now)
        if self.cordon.seen_at is None:
            yield from self._check(now)
            return
        # List the pods again when an expected event is overdue, and after `reread_every` in any case.
        self.pods.read_at = self.pods.read_at or now
        due = self.pods.read_at + self.limits.reread_every
        for tracked in self.pods.tracked.values():
            gone = self._gone_at(tracked)
            if gone is not None and self.pods.read_at < gone < due:
                due = gone
        if not self.pods.listing and self.alarm.due(due, now) and not self.alarm.later(now):
            yield self._list(now)
        if not self.pods.listed:
            return
        self.pods.looked = True
        self._rejudge(now)
        refused = [
            tracked for tracked in self.pods.tracked.values() if tracked.judged.action is Action.REFUSE
        ]
        if refused:
            # Like kubectl: if one pod may not be evicted, none is.
            self.end(Phase.FAILED, now, "some pods may not be evicted, so none was evicted")
            return
        remaining = self.pods.remaining()
        if not remaining:
            yield from self._finish(now)
            return
        self.pods.confirmed, self.volumes.empty_since = False, None
        if self.alarm.due(self.cordon.seen_at + self.limits.cordon.idle, now):
            yield from self._check(now)
        unseen = [tracked for tracked in remaining if not self.cordon.shows(tracked)]
        if unseen:
            # Nothing is scheduled to a cordoned node, so somebody may have uncordoned it.
            yield from self._check(now, for_late=all(tracked.late for tracked in unseen))
        writes = list(self._writes(remaining, pdbs, places, now)) if places is not None else []
        seen_for = now - self.cordon.seen_at
        if places is not None and writes and seen_for > self.limits.cordon.within:
            self._take_back(writes, pdbs, places)
            yield from self._check(now)
            return
        if writes and seen_for > self.limits.cordon.ahead:
            # Evictions go on while the answer is on its way.
            yield from self._check(now)
        first = {write.pod.uid for write in writes if not self.pods.tracked[write.pod.uid].late}
        self.requests.in_flight |= first
        self.slot.sent_at = now if first else self.slot.sent_at
        # A thread, or the whole process, may stand still before the write is sent.
        until = self.cordon.seen_at + self.limits.cordon.within
        for write in writes:
            before = self.pods.tracked[write.pod.uid].refused
            if isinstance(write, Restart):
                yield replace(write, until=until)
            else:
                yield replace(write, until=until, refused=before)

    def _check(self, now: datetime, *, for_late: bool = False) -> Iterator[Command]:
        if self.cordon.asked_at is None and not self.alarm.later(now):
            tracked = self.pods.tracked.values()
            # A read of others may be older than a pod that has appeared since.
            late = any(each.looks_before and not self.cordon.shows(each) for each in tracked)
            self.cordon.begin(now, for_late=for_late)
            since = None if late else now - self.limits.cordon.ahead / 2
            yield CheckNode(self.order.node, self.number, since)

    def _finish(self, now: datetime) -> Iterator[Command]:
        """Confirm with a consistent read that no pods are left, and wait for volumes, within a limit."""
        if self.pods.listing or self.volumes.asked or self.alarm.later(now):
            return
        if not self.pods.confirmed:
            yield self._list(now)
            return
        self.volumes.empty_since = self.volumes.empty_since or now
        if self.volumes.next_at is None or self.alarm.due(self.volumes.next_at, now):
            self.volumes.asked = True
            # The volume of a pod that stays is not detached, so do not wait for it.
            staying = claims_of(tracked.pod for tracked in self.pods.tracked.values())
            yield ListAttachments(self.order.node, self.number, staying)

    def _gone_at(self, tracked: Tracked) -> datetime | None:
        """Return when the watch should have reported that the pod is gone. None: the pod does not leave."""
        pod = tracked.pod
        if pod.deleting_until is not None:
            return shifted(pod.deleting_until, self.limits.overdue)
        if tracked.stage is not Stage.LEAVING or tracked.asked_at is None:
            return None
        seconds = self._grace_seconds(pod)
        return shifted(tracked.asked_at, timedelta(seconds=seconds) + self.limits.overdue)

    def _list(self, now: datetime) -> ListPods:
        self.pods.begin_list(now)
        return ListPods(self.order.node, self.number)

    def _writes(
        self, remaining: list[Tracked], pdbs: PdbTracker, places: Places, now: datetime
    ) -> Iterator[Write]:
        awaited = (tracked.judged.group for tracked in remaining if self._is_awaited(tracked, pdbs, now))
        turn = next(awaited, None)
        here = [
            tracked
            for tracked in remaining
            if turn is None or tracked.judged.group <= turn or self._is_last(tracked, now)
        ]
        queued = sum(tracked.stage is Stage.QUEUED and tracked.judged.goes for tracked in here)
        in_turn = {tracked.pod.uid for tracked in here}
        if queued >= self.limits.budgets_from:
            self.needs.budgets = True
        if self.needs.budgets:
            self.needs.budgets_of = frozenset(tracked.pod.namespace for tracked in remaining)
        # Without the budgets, many evictions would be refused. If they can't be read, evict and retry.
        waiting_for_budgets = self.needs.budgets and not pdbs.knows(self.needs.budgets_of) and not pdbs.broken
        for tracked in remaining:
            if tracked.stage is Stage.IN_FLIGHT or not self.cordon.shows(tracked):
                continue
            if tracked.retry_at is not None and not self.alarm.due(tracked.retry_at, now):
                continue
            if not places.has_room(self.order.node, tracked.pod.namespace):
                self.needs.places.add(tracked.pod.namespace)
                continue
            write = self._escalated(tracked, now)
            if write is None and tracked.pod.uid in in_turn and not waiting_for_budgets:
                write = self._ordinary(tracked, pdbs, now)
                if tracked.judged.overruled and isinstance(write, Evict | Delete):
                    self.requests.stages[tracked.pod.uid] = (
                        f"{tracked.pod.key} goes: {tracked.judged.overruled}"
                    )
            if write is not None:
                places.take(self.order.node, tracked.pod.namespace)
                tracked.stage = Stage.IN_FLIGHT
                if not isinstance(write, Restart):
                    self.pods.returns.sent(tracked.pod)
                yield write
        yield from self._tried_again(places, now)

    def _tried_again(self, places: Places, now: datetime) -> Iterator[Write]:
        """Evict what stays of the new pods of a namespace that sent too many, after pauses that double.

        Somebody may have ended what creates them. The drain does not wait for these pods, so it needs no slot
        for them. One that waits for its first slot evicts nothing.
        """
        node, returns = self.order.node, self.pods.returns
        if self.slot.awaited:
            return
        for namespace in [one.namespace for one in returns.coming]:
            at = returns.tries.get(namespace)
            if at is None or at <= now:
                # So the pauses double, and each process knows them.
                pause = max(TRY_AGAIN, now - (returns.begun or self.order.since))
                returns.tries[namespace] = now + pause
            if not self.alarm.due(at or returns.tries[namespace], now):
                continue
            self.alarm.moments.append(returns.tries[namespace])
            for tracked in self.pods.tracked.values():
                pod = tracked.pod
                if pod.namespace != namespace or not tracked.too_many or pod.uid in returns.left:
                    continue
                ready = tracked.stage is Stage.QUEUED and pod.deleting_until is None
                if ready and self.cordon.shows(tracked) and places.has_room(node, namespace):
                    places.take(node, namespace)
                    tracked.stage = Stage.IN_FLIGHT
                    kind = Delete if self.order.options.use_delete else Evict
                    yield kind(node, self.number, pod, self._grace(pod), False)

    def _is_awaited(self, tracked: Tracked, pdbs: PdbTracker, now: datetime) -> bool:
        """Whether the pods of later tiers and orders wait for this one: it goes, or can go soon.

        What its author wishes, and what never lets it go, keeps no other pod on a node that may be lost.
        """
        pod, until = tracked.pod, self._until()
        if tracked.late:
            return False
        if tracked.judged.action is Action.WAIT and pod.deleting_until is None:
            # A rule of the settings has no end. What the pod itself asks for has one.
            return tracked.judged.until is None
        gone = self._gone_at(tracked)
        if gone is not None:
            return (until is None or gone <= until) and not self.alarm.due(gone, now)
        if tracked.stage is Stage.RESTARTED:
            return not self.alarm.due((tracked.asked_at or now) + _RESTARTED_WITHIN, now)
        denied = self._denied_until(tracked)
        if denied is not None:
            return not self.alarm.due(denied, now)
        since = self.requests.refused_since.get(pod.namespace)
        if since is not None and self.alarm.due(since + AWAITED, now):
            # Also those of the namespace that were not tried yet: there may be hundreds, each of which hangs.
            return False
        budgets = pdbs.covering(pod)
        if len(budgets) != 1 or tracked.stage is Stage.IN_FLIGHT:
            return len(budgets) <= 1
        never = would_refuse(budgets[0], pod) and never_allows(budgets[0])
        return not never or self._may_restart(tracked, budgets)

    def _is_last(self, tracked: Tracked, now: datetime) -> bool:
        """Whether the pod has to go now to be gone by the deadline, whoever is before it."""
        deadline = self.order.escalation.deadline
        if deadline is None or tracked.judged.tier is Tier.OWN:
            return False
        needed = timedelta(seconds=self._grace_seconds(tracked.pod)) + AHEAD
        return self.alarm.due(shifted(deadline, -needed), now)

    def _may_restart(self, tracked: Tracked, budgets: tuple[PodDisruptionBudget, ...]) -> bool:
        """Whether its Deployment is restarted instead of an eviction, because its budget refuses that."""
        options, everywhere = self.order.options, self.order.restart_singletons
        return not tracked.no_restart and may_be_restarted(
            tracked.pod, budgets, prefix=options.prefix, everywhere=everywhere
        )

    def _ordinary(self, tracked: Tracked, pdbs: PdbTracker, now: datetime) -> Write | None:
        if tracked.stage is not Stage.QUEUED or not tracked.judged.goes:
            return None
        node, number, pod = self.order.node, self.number, tracked.pod
        own = tracked.judged.tier is Tier.OWN
        if self.order.options.use_delete:
            return Delete(node, number, pod, self._grace(pod), own) if self._may_evict(tracked) else None
        budgets = pdbs.covering(pod)
        if tracked.denied_by:
            # Webhooks are asked before budgets. Such an eviction must not keep others of its budget waiting,
            # and a webhook may act on it although the budget allows none.
            return Evict(node, number, pod, self._grace(pod), own) if self._may_evict(tracked) else None
        if len(budgets) == 1:
            closed = pdbs.closed_until(budgets[0], pod, now, self.limits.retry.last)
            if closed is not None:
                self.needs.refused_by.add(budgets[0].key)
                self.alarm.moments.append(closed)
                if self._may_restart(tracked, budgets):
                    return Restart(node, number, pod) if self._may_evict(tracked) else None
                if tracked.budget != budgets[0].key:
                    tracked.refused = Refused.counted(tracked.refused, f"PDB {budgets[0].key}")
                tracked.because, tracked.budget = waits_for(budgets[0]), budgets[0].key
                return None
        elif budgets and not tracked.because:
            tracked.because = two_budgets(budgets)
        if not self._may_evict(tracked):
            return None
        counted = tuple(budget for budget in budgets if asks(budget, pod))
        if not pdbs.take(counted, pod.uid):
            self.needs.refused_by.update(budget.key for budget in counted)
            return None
        return Evict(node, number, pod, self._grace(pod), own)

    def _escalated(self, tracked: Tracked, now: datetime) -> Write | None:
        """Return the escalation for a pod: before the deadline, or if it is stuck. None: there is none."""
        steps, pod = self.order.escalation, tracked.pod
        if (
            steps.delete_before_deadline
            and steps.deadline is not None
            and tracked.judged.tier is not Tier.OWN
        ):
            left = max(1, int((steps.deadline - now).total_seconds()))
            if pod.deleting_until is not None:
                if pod.deleting_until > steps.deadline and not tracked.hastened:
                    tracked.hastened = True
                    return self._stage(
                        pod, left, "has a shorter grace period now, to be gone by the deadline"
                    )
            elif tracked.judged.goes and tracked.stage in (Stage.QUEUED, Stage.RESTARTED):
                grace = self._grace_seconds(pod)
                if self.alarm.due(shifted(steps.deadline, -timedelta(seconds=grace)), now):
                    tracked.hastened = True
                    instead = "is deleted instead of evicted, to be gone by the deadline"
                    return self._stage(pod, min(grace, left), instead)
        if not tracked.forced and tracked.remains and tracked.judged.action is not Action.KEEP:
            stuck_at, because = self._stuck_at(pod)
            if stuck_at is not None and self.alarm.due(stuck_at, now):
                tracked.forced = True
                return self._stage(pod, 0, f"is deleted with grace period 0, because {because}")
        return None

    def _stuck_at(self, pod: Pod) -> tuple[datetime | None, str]:
        """Return from when a pod that is being deleted is deleted without grace (UTC), and why then."""
        steps, until = self.order.escalation, pod.deleting_until
        if until is not None and steps.force_stuck_after is not None and not self._node_ready:
            return shifted(until, steps.force_stuck_after), "it is stuck on a node that is not Ready"
        if until is not None and steps.force_late:
            grace = timedelta(seconds=self._grace_seconds(pod))
            return shifted(until, grace), "it is still there after twice its grace period"
        return None, ""

    def _stage(self, pod: Pod, grace: int, done: str) -> Delete:
        self.requests.stages[pod.uid] = f"{pod.key} {done}"
        return Delete(self.order.node, self.number, pod, grace)

    def _refused(
        self, tracked: Tracked, write: Write, error: ReconcilerError, pdbs: PdbTracker, now: datetime
    ) -> str:
        limits, pod = self.limits, tracked.pod
        refusal = read_refusal(error, pod, pdbs.covering(pod))
        restarting = isinstance(write, Restart)
        tracked.stage = Stage.QUEUED
        if restarting and (refusal.denied_by or isinstance(error, NotFound | Forbidden | Rejected)):
            # The pod is evicted like any other, and the reason against a restart is reported.
            tracked.no_restart = str(error) or type(error).__name__
            return ""
        tracked.because, tracked.budget = refusal.because, refusal.budget
        tracked.denied_by = refusal.denied_by
        if not restarting and refusal.meaning not in (RefusalMeaning.GONE, RefusalMeaning.STOP):
            tracked.refused = Refused.counted(tracked.refused, refusal.by)
        pause = limits.retry.pause(tracked.failures)
        match refusal.meaning:
            case RefusalMeaning.GONE if restarting:
                # The conflict is about the Deployment, not the pod: someone else changes it too.
                tracked.because = str(error)
            case RefusalMeaning.GONE:
                # The watch will report this soon. If it does not, the pod is evicted again after a while.
                tracked.stage, tracked.asked_at, tracked.because = Stage.LEAVING, now, ""
                return ""
            case RefusalMeaning.STOP:
                return refusal.because
            case RefusalMeaning.BUDGET:
                self.needs.budgets = True
                if refusal.budget:
                    pdbs.exhausted(refusal.budget, now, limits.retry)
                if [one.key for one in pdbs.covering(pod)] == [refusal.budget] and refusal.wait is None:
                    # The tracker of the budget decides when to retry, for all its pods. It does not where the
                    # watch shows other budgets of the pod than the server has.
                    tracked.retry_at = None
                    return ""
            case RefusalMeaning.DENIED:
                self._deny(tracked, refusal, now)
                return ""
            case RefusalMeaning.DYING | RefusalMeaning.SLOWLY:
                pause = limits.slow.pause(tracked.failures)
            case RefusalMeaning.LATER:
                pass
        tracked.failures += 1
        if refusal.meaning is not RefusalMeaning.BUDGET:
            self.requests.refused_since.setdefault(pod.namespace, now)
        tracked.hastened = tracked.forced = False
        tracked.retry_at = now + max(pause, limits.asked_wait(refusal.wait))
        return ""

    def _deny(self, tracked: Tracked, refusal: EvictionRefusal, now: datetime) -> None:
        """Note that a webhook denied the write, and when the pod is asked for again."""
        limits, steps = self.limits, self.order.escalation
        # Where more pods are denied than the record keeps, the others count from the last of these on.
        denied = self.order.seen.denied
        kept = denied if len(denied) >= MOST_SEEN else ()
        tracked.denied_since = tracked.denied_since or max((one.at for one in kept), default=now)
        pause = limits.denied.pause(tracked.failures)
        pause = max(pause, min(limits.asked_wait(refusal.wait), limits.denied.last))
        tracked.failures += 1
        tracked.hastened = tracked.forced = False
        tracked.retry_at = now + pause
        if steps.delete_before_deadline and steps.deadline is not None:
            # The pause must not put off the deletion.
            deletes = shifted(steps.deadline, -timedelta(seconds=self._grace_seconds(tracked.pod)))
            tracked.retry_at = min(tracked.retry_at, deletes) if deletes > now else tracked.retry_at

    def _take_back(self, writes: list[Write], pdbs: PdbTracker, places: Places) -> None:
        for write in writes:
            pdbs.release(write.pod.uid)
            places.release(write.node, write.pod.namespace)
            tracked = self.pods.tracked[write.pod.uid]
            tracked.stage = Stage.LEAVING if write.pod.uid in self.requests.evicted else Stage.QUEUED
            tracked.hastened = tracked.forced = False
            self.requests.stages.pop(write.pod.uid, None)

    # Helpers.

    @property
    def _node_ready(self) -> bool:
        return self.order.node_ready if self.cordon.ready is None else self.cordon.ready

    def _see_pod(self, pod: Pod, now: datetime, *, listed: bool) -> None:
        tracked = self.pods.tracked.get(pod.uid)
        if tracked is not None and tracked.pod.deleting_until is not None and pod.deleting_until is None:
            if not listed:
                # A late event. A deletion is never taken back.
                return
            # But somebody may have restored a backup from before it, and a list is the truth.
            self.requests.evicted.discard(pod.uid)
            if tracked.stage is not Stage.IN_FLIGHT:
                tracked.stage = Stage.QUEUED
        returns, at_start = self.pods.returns, self.pods.at_start
        if tracked is None:
            returns.arrived(pod, at_start=at_start)
            late = returns.is_late(pod, at_start=at_start)
            judged = self._judge(pod, now)
            denied = next((one.at for one in self.order.seen.denied if one.of == pod.uid), None)
            reads = 0 if at_start else self.cordon.reads
            tracked = Tracked(judged, looks_before=reads, denied_since=denied, late=late)
            self.pods.tracked[pod.uid] = tracked
            if tracked.remains:
                tracked.too_many = returns.is_too_many(pod, late=late, at_start=at_start)
                tracked.judged = self._judge(pod, now, too_many=tracked.too_many)
        else:
            judged = self._judge(pod, now, too_many=tracked.too_many)
            if pod.deleting_until is not None and tracked.pod.deleting_until is None:
                # Whatever refused its eviction, the pod leaves now.
                tracked.because = tracked.budget = tracked.denied_by = ""
            tracked.judged = judged
        if tracked.remains:
            self.pods.had.add(pod.uid)

    def _judge(self, pod: Pod, now: datetime, *, too_many: bool = False) -> PodDeleteStatus:
        order, stays = self.order, ""
        if pod.uid in self.pods.returns.left and not pod.finished:
            stays = returns_because(pod)
        elif too_many:
            stays = one_too_many(pod.namespace)
        return judge(
            pod, order.options, now=now, namespaces=order.namespaces, own_pod=order.own_pod, returned=stays
        )

    def _rejudge(self, now: datetime) -> None:
        """Update the verdicts that depend on the time."""
        for tracked in self.pods.tracked.values():
            pod = tracked.pod
            if pod.deleting_until is not None and self.order.options.skip_terminating_after:
                tracked.judged = self._judge(pod, now, too_many=tracked.too_many)
                if tracked.judged.action is Action.SKIP:
                    tracked.stage = Stage.QUEUED
                else:
                    at = shifted(pod.deleting_until, self.order.options.skip_terminating_after)
                    self.alarm.moments.append(shifted(at, timedelta(seconds=1)))
            elif tracked.judged.action is Action.WAIT and (
                pod.deleting_until is None or tracked.judged.until is not None
            ):
                # The order may have another deadline now, and a wait that the pod asked for ends.
                tracked.judged = self._judge(pod, now, too_many=tracked.too_many)
                if tracked.judged.action is Action.SKIP:
                    tracked.stage = Stage.QUEUED
                elif tracked.judged.until is not None:
                    self.alarm.due(tracked.judged.until, now)
            elif (
                tracked.stage is Stage.LEAVING
                and pod.deleting_until is None
                and tracked.asked_at is not None
                and self.alarm.due(tracked.asked_at + _SPARED_AFTER, now)
            ):
                tracked.stage = Stage.QUEUED

    def _grace(self, pod: Pod) -> int | None:
        """Return the grace period for the request, in seconds. None: that of the pod."""
        grace = self.order.options.grace
        return grace.seconds if grace.longest is None else grace.requested(pod.spec.grace_period)

    def _grace_seconds(self, pod: Pod) -> int:
        """Return the seconds that the pod gets to end, from its request or its own grace period."""
        grace = self._grace(pod)
        return grace_seconds(pod.spec.grace if grace is None else grace)

    def _attempt_later(self, now: datetime) -> None:
        self.alarm.retry_at = now + self.limits.retry.first

    def _blockers(self, now: datetime) -> Iterator[Blocker]:
        limit = self._until()
        for tracked in self.pods.remaining():
            pod = tracked.pod
            if tracked.because:
                because = tracked.because
                if tracked.no_restart and tracked.no_restart != because:
                    because = f"{because}; it can't be restarted instead: {tracked.no_restart}"
                until = self._denied_until(tracked)
                if until is not None:
                    because = f"{because}; it counts as blocked from {to_text(until)} on"
                yield Blocker(pod.key, because, tracked.budget, until is not None and now < until)
            elif pod.deleting_until is not None and pod.deleting_until < now:
                late = int((now - pod.deleting_until).total_seconds())
                yield Blocker(pod.key, f"is still terminating {late}s after its grace period")
            elif limit is not None and pod.deleting_until is not None and pod.deleting_until > limit:
                grace = grace_text(pod.spec.grace)
                yield Blocker(pod.key, f"its grace period is {grace}; waits at most until {to_text(limit)}")
            elif not self.running:
                going = pod.deleting_until is not None or tracked.stage is Stage.LEAVING
                yield Blocker(pod.key, "was terminating" if going else "was not evicted yet")
            elif tracked.judged.action is Action.WAIT and pod.deleting_until is None:
                yield Blocker(pod.key, "; ".join(tracked.judged.reasons))

    def _escalations(self, blockers: tuple[Blocker, ...], now: datetime) -> Iterator[str]:
        steps = self.order.escalation
        loud = steps.warn_after
        if self.running and loud is not None and now >= shifted(self.order.since, loud):
            for blocker in blockers:
                yield f"not drained after {format_duration(loud)}: {blocker.pod} {blocker.because}"
        # Also for pods that are gone by now.
        yield from self.requests.stages.values()
