"""The run of one node: each of its profiles takes at most one step in a pass.

A profile first runs the `enter` chain of its state, once. Then all checks of all transitions are asked, so
that every reason is known, and the first transition that passes is taken, with its own triggers. One that is
unknown stops those behind it, because it may be the first that passes. A chain that waits for the drain of
the node goes on in a later pass, whatever its checks say then: the drain has begun.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from msgspec import Struct

from reconciler.features.workflows.configured import Workflows, draining_of
from reconciler.features.workflows.data import ProfileData, WorkflowData
from reconciler.features.workflows.holds import WORKFLOW
from reconciler.features.workflows.notifying import after_sent
from reconciler.features.workflows.reading import ReadForChecks
from reconciler.features.workflows.reports import StepAnswer, WorkflowReport
from reconciler.features.workflows.services import CLAIM
from reconciler.features.workflows.situation import Worked, WorkflowSituation
from reconciler.features.workflows.trigger_types import Draining
from reconciler.model.expression import names
from reconciler.model.holds import INTERNAL, ONE_PROFILE
from reconciler.model.leases import LeaseTake
from reconciler.model.plan import Hold, Notice, Verdict
from reconciler.model.problems import internal
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.profiles.state_machine import (
    Answers,
    Profile,
    Step,
    Verdicts,
    blockers,
    first_open,
    verdicts_of,
)
from reconciler.profiles.vocabulary import Trigger

CHANGED = "ChangedMaintenanceState"
"""The reason of maintenance-controller's Event about a step."""


class Ran(Struct, frozen=True):
    """A node after the run: the work of its triggers, its data, and what is to be reported.

    `takes` are the Leases that its steps take. `draining` is how the node is drained for a chain that waits,
    None if none does.
    """

    work: Worked
    data: WorkflowData
    reports: tuple[WorkflowReport, ...] = ()
    holds: tuple[Hold, ...] = ()
    takes: tuple[LeaseTake, ...] = ()
    draining: Draining | None = None


def maintained(
    data: WorkflowData, label: str, workflows: Workflows, situation: WorkflowSituation
) -> WorkflowData:
    """Return the data with the profiles that the label lists: new ones are operational since now."""
    fresh = ProfileData(situation.second)
    selected = {name: data.profiles.get(name, fresh) for name in workflows.selected(label)}
    listed = label.split("--")
    kept = {name: profile for name, profile in data.profiles.items() if name in listed}
    return replace(data, profiles={**kept, **selected})


def waiting_drain(workflow: Profile, kept: ProfileData) -> Draining | None:
    """Return how the node is drained for the chain of this profile that waits, None without such a chain."""
    rules = workflow.rules(kept.current)
    chains = [rules.enter] if kept.is_entering else [step.triggers for step in rules.transitions]
    return next((draining for chain in chains if (draining := draining_of(chain)) is not None), None)


def run(
    workflows: Workflows,
    profiles: tuple[str, ...],
    work: Worked,
    situation: WorkflowSituation,
    *,
    resumed: Collection[str] = (),
    starts: bool = True,
) -> Ran:
    """Return the node after one step of each of these profiles, in this order.

    `situation` has the node, its data with these profiles, and what was read. `resumed` are the profiles with
    a chain that waits for the drain of the node: while somebody has uncordoned it, they only leave that
    chain. Without `starts` only nodes in maintenance go on, and one that waits for it may go back. A profile
    that takes no part has a report, too.
    """
    ran = Ran(replace(work, waits=""), situation.data)
    # A profile that leaves maintenance in this pass keeps the others out of it until the next one. So does
    # one whose chain waits for the drain of the node: it is in maintenance as soon as the chain ends.
    inside = (name for name in profiles if situation.data.profiles[name].current is State.IN_MAINTENANCE)
    first = {*inside, *resumed}
    uncordoned = not work.node.unschedulable and work.record.cordon is not None
    for name in profiles:
        try:
            profile = _Profile(workflows, workflows.by_name[name], ran, situation, first)
            if not starts and name not in first:
                ran = profile.back()
            elif name in resumed and uncordoned:
                ran = profile.leave()
            else:
                ran = profile.run(resumed=name in resumed)
        except Exception as error:  # noqa: BLE001 - one profile's error drops no other's progress (law 19)
            problem = internal(f"node {situation.node.name}: profile {name} failed", error)
            reason = f"profile {name}: an error in this program, see its log: {problem}"
            kept = situation.data.profiles[name]
            report = WorkflowReport(name, kept.current, kept.current, kept.transition)
            hold = INTERNAL.on(situation.node.name, reason)
            ran = replace(ran, holds=(*ran.holds, hold), reports=(*ran.reports, report))
    return ran


class _Profile:
    def __init__(
        self,
        workflows: Workflows,
        workflow: Profile,
        ran: Ran,
        situation: WorkflowSituation,
        first: Collection[str],
    ) -> None:
        self.kept = ran.data.profiles[workflow.name]
        self._workflows, self._workflow, self._ran = workflows, workflow, ran
        drain = ran.work.record.drain_under_way
        claims = drain.claims if drain is not None else ()
        drained_for = {claim.name for claim in claims if claim.kind == CLAIM}
        inside = {
            name
            for name, kept in ran.data.profiles.items()
            if kept.current is State.IN_MAINTENANCE or name in drained_for
        }
        others = {*first, *inside} - {workflow.name}
        self._others = (*situation.in_maintenance_here, *sorted(others))
        self._situation = replace(
            situation,
            data=ran.data,
            profile=workflow.name,
            state=self.kept.current,
            since=self.kept.transition,
            read=reduce(ReadForChecks.taken, ran.takes, situation.read),
            in_maintenance_here=self._others,
        )
        self._answers = Answers(workflows.checks, self._situation)

    def leave(self) -> Ran:
        """Return the node after a step away from the chain that waits for its drain, if one passes.

        The profile gives up its claims then, and also if the step with that chain no longer passes.
        """
        work, claim = self._ran.work, self._situation.claim
        free = replace(work, record=work.record.undrained(claim).uncordoned(claim))
        verdicts = self._verdicts(work)
        step = self._chosen(verdicts, resumed=False)
        stays = step is not None and step.next is self.kept.current
        if step is None or stays or draining_of(step.triggers) is not None:
            given_up = stays or all(verdict is Verdict.FAILED for _, verdict in verdicts)
            work = free if given_up and not self.kept.is_entering else work
            return self.ended(work, self.kept, verdicts=verdicts)
        return self._step(step, self.kept, free, verdicts, resumed=False)

    def back(self) -> Ran:
        """Return the node after a step from `maintenance-required` to `operational`, if one passes."""
        work, kept = self._ran.work, self.kept
        if kept.current is not State.REQUIRED:
            return self.ended(work, kept)
        verdicts = tuple(
            (step, verdict)
            for step, verdict in self._verdicts(work)
            if step.next is State.OPERATIONAL and draining_of(step.triggers) is None
        )
        step = self._chosen(verdicts, resumed=False)
        if step is None:
            return self.ended(work, kept, verdicts=verdicts)
        return self._step(step, kept, work, verdicts, resumed=False)

    def run(self, *, resumed: bool) -> Ran:
        """Return the node after this profile's step."""
        before, work = self.kept, self._ran.work
        if before.is_entering:
            enter = self._workflow.rules(before.current).enter
            work = self._chain(enter, work, resumed=resumed)
            if work.waits:
                return self.ended(work, before, draining=draining_of(enter))
            before = replace(before, previous=before.current)
            resumed = False
        verdicts = self._verdicts(work)
        step = self._chosen(verdicts, resumed=resumed)
        if step is None or step.next is before.current:
            return self.ended(work, before, verdicts=verdicts)
        return self._step(step, before, work, verdicts, resumed=resumed)

    def _step(
        self, step: Step, before: ProfileData, work: Worked, verdicts: Verdicts, *, resumed: bool
    ) -> Ran:
        situation = replace(self._situation, node=work.node)
        work = self._chain(step.triggers, work, resumed=resumed)
        if work.waits:
            return self.ended(work, before, verdicts=verdicts, draining=draining_of(step.triggers))
        takes = [self._workflows.checks[name].takes(situation) for name in names(step.check)]
        message = f"The node is now in the {step.next} state caused by profile {self._workflow.name}"
        work = work.with_notice(Notice(CHANGED, message, named_as_node=True))
        moved = ProfileData(after_sent(self._ran.data, situation.second), step.next, self.kept.current)
        ended = self.ended(work, moved, verdicts=verdicts, taken=step)
        return replace(ended, takes=(*ended.takes, *(take for take in takes if take is not None)))

    def _verdicts(self, work: Worked) -> Verdicts:
        self._answers = self._answers.about(replace(self._situation, node=work.node))
        return verdicts_of(self._workflow.rules(self.kept.current), self._answers)

    def _chosen(self, verdicts: Verdicts, *, resumed: bool) -> Step | None:
        """Return the transition to take: the first that passes, or the one whose drain has begun."""
        if not resumed:
            return first_open(verdicts, self._full, unknown_stops=True)
        draining = [step for step, _ in verdicts if draining_of(step.triggers) is not None]
        passing = [step for step, verdict in verdicts if verdict is Verdict.PASSED and not self._full(step)]
        return next((step for step in (*passing, *draining) if step in draining), None)

    def _full(self, step: Step) -> bool:
        """Whether the step leads into maintenance while the node is in maintenance, for whatever."""
        inside = self.kept.current is State.IN_MAINTENANCE or bool(self._others)
        return inside and step.next is State.IN_MAINTENANCE

    def _chain(self, chain: tuple[Trigger, ...], work: Worked, *, resumed: bool) -> Worked:
        theirs = self.kept.is_entering and self.kept.is_theirs
        situation = replace(self._situation, resumed=resumed, taken_over=theirs)
        missing = next((why for trigger in chain if (why := trigger.missing(situation, work))), "")
        if missing:
            return replace(work, waits=missing)
        for trigger in chain:
            work = trigger(situation, work)
            if work.waits:
                break
        return work

    def ended(
        self,
        work: Worked,
        after: ProfileData,
        *,
        verdicts: Verdicts = (),
        taken: Step | None = None,
        draining: Draining | None = None,
    ) -> Ran:
        """Return the node with this profile's part of everything."""
        name, ran = self._workflow.name, self._ran
        report = WorkflowReport(
            name,
            self.kept.current,
            after.current,
            after.transition,
            work.waits,
            tuple(StepAnswer(step.next, step.text, verdict, step is taken) for step, verdict in verdicts),
            tuple(self._answers.values()),
            self._situation.node.labels.get(self._situation.keys.log_details) == "true",
        )
        return replace(
            ran,
            work=replace(work, waits=""),
            data=replace(ran.data, profiles={**ran.data.profiles, name: after}),
            reports=(*ran.reports, report),
            holds=ran.holds if taken is not None else (*ran.holds, *self._holds(work.waits, verdicts)),
            draining=ran.draining or draining,
        )

    def _holds(self, waits: str, verdicts: Verdicts) -> tuple[Hold, ...]:
        """Return what keeps the profile in its state. An operational node only has to be readable."""
        name, node = self._workflow.name, self._situation.node.name
        if waits:
            return (WORKFLOW.on(node, f"profile {name}: {waits}"),)
        found: dict[str, Hold] = {}
        for step, verdict in verdicts:
            if step.next is self.kept.current:
                continue
            if verdict is Verdict.PASSED and self._full(step):
                others = ", ".join(self._others)
                reason = f"profile {name}: it is in maintenance for {others}; only one profile at a time"
                found[ONE_PROFILE.code] = ONE_PROFILE.on(node, reason)
            for answer in blockers(step.check, self._answers.__getitem__):
                if self.kept.current is State.OPERATIONAL and answer.verdict is not Verdict.UNKNOWN:
                    continue
                reason = f"profile {name}: {answer.name}: {answer.words}"
                hold = WORKFLOW.on(node, reason, answer.until)
                if answer.verdict is not Verdict.UNKNOWN:
                    kind = self._workflows.checks[answer.name].type
                    by_itself = kind.by_itself or answer.until is not None
                    hold = replace(hold, who=kind.who, by_itself=by_itself)
                found[answer.name] = hold
        return tuple(found.values())
