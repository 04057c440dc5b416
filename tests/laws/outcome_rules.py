"""The rules of outcomes: what is recorded of a case, what follows from it, and what is reported."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_FACTS = "reconciler/decide/facts.py"
_OUTCOME = "reconciler/model/case_outcome.py"
_TEST = "tests/decide/test_outcomes.py"
_ENDS = "tests/publishing/test_how_maintenances_end.py"

OUTCOME_RULES = (
    Mutant(
        0,
        "a start is recorded once",
        _FACTS,
        "started and facts.start_of(event) is None and facts.start_of(seen) is None",
        "started",
        _TEST,
    ),
    Mutant(
        0,
        "pods that were on the node make a miss",
        _OUTCOME,
        "result = CaseResult.MISSED if struck is not None else _result(case, done)",
        "result = _result(case, done)",
        _TEST,
    ),
    Mutant(
        0,
        "what nobody could count was not empty",
        _OUTCOME,
        "if not counted_ones and case.quiet_since is not None and never_drained:",
        "if False:",
        _TEST,
    ),
    Mutant(
        0,
        "an event that is gone after its date has started",
        _FACTS,
        "dated = old.not_before is not None and old.not_before <= context.now and reports_start(old)",
        "dated = False",
        _TEST,
    ),
    Mutant(
        0,
        "a drain that ends after the date is late",
        _OUTCOME,
        "(due is not None and done > due) or ",
        "",
        _TEST,
    ),
    Mutant(
        0,
        "an event that did not start is cancelled",
        _OUTCOME,
        "return CaseResult.CANCELLED if ended and not _begun(case) else CaseResult.DRAINED",
        "return CaseResult.DRAINED",
        _TEST,
    ),
    Mutant(
        0,
        "a request reports no start",
        _OUTCOME,
        " or any(not reports_start(one) for one in case.events)",
        "",
        _TEST,
    ),
    Mutant(
        0,
        "a latest start that passes is told",
        _FACTS,
        "    if not any(event.cannot_wait(context.now) and not event.event.started for event in events):\n",
        "    if True:\n",
        _TEST,
    ),
    Mutant(
        0,
        "no warning is sent twice",
        "reconciler/decide/draining.py",
        "noted=second_patch(one, write, telling.noted, context) if telling.noted is not None else None,",
        "noted=None,",
        _TEST,
    ),
    Mutant(
        0,
        "a killed pass loses no warning",
        "reconciler/act.py",
        "    _notify(plan, outside.notifier, lambda node: node.todo.pending, refused)\n",
        "",
        _TEST,
    ),
    Mutant(
        0,
        "the facts of an event that can't start a case go with it",
        _FACTS,
        "closed = replace(record, facts=CaseFacts(), events=(), quiet_since=None)",
        "closed = record",
        _TEST,
    ),
    Mutant(
        0,
        "the pods of a struck node are read",
        "reconciler/observe.py",
        "is_struck(node, readable.get(node.name), readings[node.name], settings)",
        "False",
        _TEST,
    ),
    Mutant(
        0,
        "the end of a missed case is a warning",
        "reconciler/triggers/uncordon.py",
        "NoticeType.WARNING if missed else NoticeType.NORMAL",
        "NoticeType.NORMAL",
        _TEST,
    ),
    Mutant(
        0,
        "a missed node is no success",
        "jobs/commands/sweep.py",
        "        self.struck |= _struck(plan)\n",
        "",
        "tests/jobs/test_sweep_passes.py",
    ),
    Mutant(
        0,
        "a drain that runs is not done",
        "reconciler/act.py",
        "yield replace(started, result=Result.RUNNING) if started.result is Result.DONE else started",
        "yield started",
        "tests/stages/test_act.py",
    ),
    Mutant(
        0,
        "a drain that was slow is reported by half of its notice",
        "reconciler/engine/orders.py",
        "min((deadline - since) / 2, LATEST_WARNING)",
        "LATEST_WARNING",
        "tests/engine/test_orders.py",
    ),
    Mutant(
        0,
        "an object of a missed event ends as missed",
        "reconciler/publishing/node_maintenances.py",
        "    if result is CaseResult.MISSED or MISSED in flags:\n        return Stage.MISSED\n",
        "",
        _ENDS,
    ),
    Mutant(
        0,
        "a node that went with its pods was missed",
        "reconciler/publishing/node_maintenances.py",
        "    if gone and one.state in _NOT_DRAINED and _took_place(one, now):\n        return Stage.MISSED\n",
        "",
        _ENDS,
    ),
)
