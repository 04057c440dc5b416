"""The run of one node: each of its profiles takes at most one step in a pass.

A profile first runs the `enter` chain of its state, once. Then all checks of all transitions are asked, so
that every reason is known, and the first transition that passes is taken, with its own triggers. One that is
unknown stops those behind it, because it may be the first that passes. A chain that waits for the drain of
the node goes on in a later pass, whatever its checks say then: the drain has begun.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct, field

from reconciler.features.workflows.configured import Step, Trigger, Workflow, Workflows
from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.notifying import after_sent
from reconciler.features.workflows.trigger import TriggerInput, Worked
from reconciler.model.holds import HoldCode
from reconciler.model.plan import CheckAnswer, Hold, Notice, StepAnswer, Verdict, WorkflowReport
from reconciler.model.problems import internal
from reconciler.model.record import Claim, ClaimKind, State
from reconciler.model.values import replace
from reconciler.model.workflow import LeaseTake, ProfileData, ReadForChecks, WorkflowData
from reconciler.profiles.expression import blockers, evaluate
from reconciler.settings.sections.trigger_types import Draining

CHANGED = "ChangedMaintenanceState"
"""The reason of maintenance-controller's Event about a step."""


class Ran(Struct, frozen=True):
    """A node after the run: the work of its triggers, its data, and what is to be reported.

    `takes` are the Leases that its steps take, and `read` is what later nodes of the pass read. `draining` is
    how the node is drained for a chain that waits, None if none does.
    """

    work: Worked
    data: WorkflowData
    reports: tuple[WorkflowReport, ...] = ()
    holds: tuple[Hold, ...] = ()
    notices: tuple[Notice, ...] = ()
    takes: tuple[LeaseTake, ...] = ()
    read: ReadForChecks = field(default_factory=ReadForChecks)
    draining: Draining | None = None


def claim_of(profile: str) -> Claim:
    """Return the claim of a profile on the cordon and the drain of a node."""
    return Claim(ClaimKind.WORKFLOW, profile)


def maintained(data: WorkflowData, label: str, workflows: Workflows, given: CheckInput) -> WorkflowData:
    """Return the data with the profiles that the label lists: new ones are operational since now."""
    fresh = ProfileData(given.now.replace(microsecond=0))
    selected = {name: data.profiles.get(name, fresh) for name in workflows.selected(label)}
    listed = label.split("--")
    kept = {name: one for name, one in data.profiles.items() if name in listed}
    return replace(data, profiles={**kept, **selected})


def waiting_drain(workflow: Workflow, kept: ProfileData) -> Draining | None:
    """Return how the node is drained for the chain of this profile that waits, None without such a chain."""
    rules = workflow.rules(kept.current)
    chains = [rules.enter] if kept.is_entering else [one.triggers for one in rules.steps]
    found = (trigger.draining for chain in chains for trigger in chain)
    return next((one for one in found if one is not None), None)


def run(
    workflows: Workflows,
    names: tuple[str, ...],
    work: Worked,
    given: CheckInput,
    *,
    resumed: Collection[str] = (),
    starts: bool = True,
) -> Ran:
    """Return the node after one step of each of the profiles `names`, in this order.

    `given` has the node, its data with these profiles, and what was read. `resumed` are the profiles with a
    chain that waits for the drain of the node: while somebody has uncordoned it, they only leave that chain.
    Without `starts` only nodes in maintenance go on. A profile that takes no part has a report, too.
    """
    ran = Ran(replace(work, waits=""), given.data, read=given.read)
    # A profile that leaves maintenance in this pass keeps the others out of it until the next one. So does
    # one whose chain waits for the drain of the node: it is in maintenance as soon as the chain ends.
    inside = (name for name in names if given.data.profiles[name].current is State.IN_MAINTENANCE)
    first = {*inside, *resumed}
    for name in names:
        try:
            profile = _Profile(workflows, workflows.by_name[name], ran, given, first)
            if not starts and name not in first:
                ran = profile.rest()
            elif name in resumed and _is_stopped(work):
                ran = profile.leave()
            else:
                ran = profile.run(resumed=name in resumed)
        except Exception as error:  # noqa: BLE001 - one profile's error drops no other's progress (law 19)
            problem = internal(f"node {given.node.name}: profile {name} failed", error)
            reason = f"profile {name}: an error in this program, see its log: {problem}"
            kept = given.data.profiles[name]
            report = WorkflowReport(name, kept.current, kept.current, kept.transition)
            hold = Hold(given.node.name, HoldCode.INTERNAL, reason)
            ran = replace(ran, holds=(*ran.holds, hold), reports=(*ran.reports, report))
    return ran


def _is_stopped(work: Worked) -> bool:
    """Whether somebody has uncordoned the node during the drain of a workflow (law 1)."""
    return not work.node.unschedulable and work.record.cordon is not None


class _Profile:
    """One profile of one node, for one pass."""

    def __init__(
        self, workflows: Workflows, workflow: Workflow, ran: Ran, given: CheckInput, first: Collection[str]
    ) -> None:
        self._workflows, self._workflow, self._ran = workflows, workflow, ran
        self._kept = ran.data.profiles[workflow.name]
        others = {*first, *_in_maintenance(ran.data), *_drained_for(ran)} - {workflow.name}
        self._others = (*given.in_maintenance_here, *sorted(others))
        self._given = given
        self._answers: dict[str, CheckAnswer] = {}

    def rest(self) -> Ran:
        """Return the node as it is, with this profile's report."""
        return self._ended(self._ran.work, self._kept)

    def leave(self) -> Ran:
        """Return the node after a step away from the chain that waits for its drain, if one passes.

        The profile gives up its claims then, and also if the step with that chain no longer passes.
        """
        rules, work = self._workflow.rules(self._kept.current), self._ran.work
        claim = claim_of(self._workflow.name)
        free = replace(work, record=work.record.undrained(claim).uncordoned(claim))
        verdicts = [(step, evaluate(step.check, self._asker(self._input(work)))) for step in rules.steps]
        step = self._chosen(verdicts, resumed=False)
        stays = step is not None and step.next is self._kept.current
        if step is None or stays or _draining(step.triggers) is not None:
            given_up = stays or all(verdict is Verdict.FAILED for _, verdict in verdicts)
            work = free if given_up and not self._kept.is_entering else work
            return self._ended(work, self._kept, verdicts=verdicts)
        return self._step(step, self._kept, free, verdicts, resumed=False)

    def run(self, *, resumed: bool) -> Ran:
        """Return the node after this profile's step."""
        before, rules = self._kept, self._workflow.rules(self._kept.current)
        work = self._ran.work
        if before.is_entering:
            work = self._chain(rules.enter, work, resumed=resumed)
            if work.waits:
                return self._ended(work, before, waits=work.waits, draining=_draining(rules.enter))
            before = replace(before, previous=before.current)
            resumed = False
        given = self._input(work)
        answer = self._asker(given)
        verdicts = [(step, evaluate(step.check, answer)) for step in rules.steps]
        step = self._chosen(verdicts, resumed=resumed)
        if step is None or step.next is before.current:
            return self._ended(work, before, verdicts=verdicts)
        return self._step(step, before, work, verdicts, resumed=resumed)

    def _step(
        self,
        step: Step,
        before: ProfileData,
        work: Worked,
        verdicts: list[tuple[Step, Verdict]],
        *,
        resumed: bool,
    ) -> Ran:
        """Return the node after this step, or with what its chain waits for."""
        given = self._input(work)
        work = self._chain(step.triggers, work, resumed=resumed)
        if work.waits:
            draining = _draining(step.triggers)
            return self._ended(work, before, waits=work.waits, verdicts=verdicts, draining=draining)
        takes = [take for name in step.asks if (take := self._workflows.checks[name].takes(given))]
        ended = self._ended(work, self._moved(step), verdicts=verdicts, taken=step)
        read = ended.read
        for take in takes:
            read = read.taken(take)
        message = f"The node is now in the {step.next} state caused by profile {self._workflow.name}"
        notice = Notice(CHANGED, message, named_as_node=True)
        return replace(ended, takes=(*ended.takes, *takes), read=read, notices=(*ended.notices, notice))

    def _moved(self, step: Step) -> ProfileData:
        moment = after_sent(self._ran.data, self._given.now.replace(microsecond=0))
        return ProfileData(moment, step.next, self._kept.current)

    def _input(self, work: Worked) -> CheckInput:
        """Return what the checks read: the node and its data as the profiles before leave them."""
        return replace(
            self._given,
            node=work.node,
            data=self._ran.data,
            profile=self._workflow.name,
            state=self._kept.current,
            since=self._kept.transition,
            read=self._ran.read,
            in_maintenance_here=self._others,
        )

    def _asker(self, given: CheckInput) -> Callable[[str], CheckAnswer]:
        def answer(name: str) -> CheckAnswer:
            if name not in self._answers:
                self._answers[name] = self._workflows.checks[name].ask(given)
            return self._answers[name]

        return answer

    def _chosen(self, verdicts: list[tuple[Step, Verdict]], *, resumed: bool) -> Step | None:
        """Return the transition to take: the first that passes, or the one whose drain has begun.

        One that is unknown stops those behind it, because it may be the first that passes.
        """
        possible = [(step, verdict) for step, verdict in verdicts if not self._full(step)]
        open_ones = [step for step, verdict in possible if verdict is Verdict.PASSED]
        if not resumed:
            first = next((one for one in possible if one[1] is not Verdict.FAILED), None)
            return first[0] if first is not None and first[1] is Verdict.PASSED else None
        draining = [step for step, _ in verdicts if _draining(step.triggers) is not None]
        return next((step for step in (*open_ones, *draining) if step in draining), None)

    def _full(self, step: Step) -> bool:
        """Whether the step leads into maintenance while the node is in maintenance, for whatever."""
        inside = self._kept.current is State.IN_MAINTENANCE or bool(self._others)
        return inside and step.next is State.IN_MAINTENANCE

    def _chain(self, chain: tuple[Trigger, ...], work: Worked, *, resumed: bool) -> Worked:
        second = self._given.now.replace(microsecond=0)
        theirs = self._kept.is_entering and self._kept.is_theirs
        given = TriggerInput(work, claim_of(self._workflow.name), second, resumed, self._ran.read, theirs)
        missing = next((why for trigger in chain if (why := trigger.missing(given))), "")
        if missing:
            return replace(work, waits=missing)
        for trigger in chain:
            work = trigger.do(replace(given, work=work))
            if work.waits:
                break
        return work

    def _ended(
        self,
        work: Worked,
        after: ProfileData,
        *,
        waits: str = "",
        verdicts: list[tuple[Step, Verdict]] | None = None,
        taken: Step | None = None,
        draining: Draining | None = None,
    ) -> Ran:
        """Return the node with this profile's part of everything."""
        name, verdicts = self._workflow.name, verdicts or []
        report = WorkflowReport(
            name,
            self._kept.current,
            after.current,
            after.transition,
            waits,
            tuple(StepAnswer(one.next, one.text, verdict, one is taken) for one, verdict in verdicts),
            tuple(self._answers.values()),
            self._given.node.labels.get(self._given.keys.log_details) == "true",
        )
        ran = self._ran
        return replace(
            ran,
            work=replace(work, waits=""),
            data=replace(ran.data, profiles={**ran.data.profiles, name: after}),
            reports=(*ran.reports, report),
            holds=ran.holds if taken is not None else (*ran.holds, *self._holds(waits, verdicts)),
            draining=ran.draining or draining,
        )

    def _holds(self, waits: str, verdicts: list[tuple[Step, Verdict]]) -> tuple[Hold, ...]:
        """Return what keeps the profile in its state. An operational node only has to be readable."""
        name, node = self._workflow.name, self._given.node.name
        if waits:
            return (Hold(node, HoldCode.WORKFLOW, f"profile {name}: {waits}"),)
        found: dict[str, Hold] = {}
        for step, verdict in verdicts:
            if step.next is self._kept.current:
                continue
            if verdict is Verdict.PASSED and self._full(step):
                others = ", ".join(self._others)
                reason = f"profile {name}: it is in maintenance for {others}; only one profile at a time"
                found[HoldCode.ONE_PROFILE] = Hold(node, HoldCode.ONE_PROFILE, reason)
            for one in blockers(step.check, self._answers.__getitem__):
                if self._kept.current is State.OPERATIONAL and one.verdict is not Verdict.UNKNOWN:
                    continue
                reason = f"profile {name}: {one.name}: {one.words}"
                found[one.name] = Hold(node, HoldCode.WORKFLOW, reason, one.until)
        return tuple(found.values())


def _draining(chain: tuple[Trigger, ...]) -> Draining | None:
    return next((one.draining for one in chain if one.draining is not None), None)


def _in_maintenance(data: WorkflowData) -> tuple[str, ...]:
    kept: Mapping[str, ProfileData] = data.profiles
    return tuple(name for name, one in kept.items() if one.current is State.IN_MAINTENANCE)


def _drained_for(ran: Ran) -> tuple[str, ...]:
    """Return the profiles of the node whose chains wait for its drain."""
    drain = ran.work.record.drain_under_way
    if drain is None:
        return ()
    claims = (one.name for one in drain.claims if one.kind is ClaimKind.WORKFLOW)
    return tuple(name for name in claims if name in ran.data.profiles)
