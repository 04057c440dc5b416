"""The rules of a look ahead: what comes first, what is counted, and what can be seen without colours."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_CASES = "reconciler/features/planning/cases.py"

AHEAD_RULES = (
    Mutant(
        8,
        "a start that is spaced from one that gave way moves with the clock",
        "reconciler/passes/decide/drift.py",
        "    reached = [*seeds, *(at for at in waiting if _is_spaced(at, seeds, limits.spacing))]\n",
        "    reached = [*seeds]\n",
        "tests/laws/test_law_08_a_converged_pass_writes_nothing.py",
    ),
    Mutant(
        0,
        "a miss has its sign also without colours",
        "reconciler/features/planning/chart.py",
        "{signs.missed if missed else ' '}",
        "{' '}",
        "tests/features/planning/test_chart.py",
    ),
    Mutant(
        0,
        "what will be missed comes first",
        _CASES,
        "return case.status is not Status.MISSED, case.first",
        "return False, case.first",
        "tests/features/planning/test_cases.py",
    ),
    Mutant(
        0,
        "a drain that a rehearsal would begin has not started",
        _CASES,
        "schedule.started and schedule.planned_start < now",
        "schedule.started",
        "tests/features/planning/test_cases.py",
    ),
    Mutant(
        0,
        "a case after the end is counted",
        _CASES,
        "one.first is not None and until <= one.first",
        "False",
        "tests/features/planning/test_cases.py",
    ),
    Mutant(
        0,
        "cases that the screen has no lines for are counted",
        "reconciler/features/planning/text.py",
        "    if hidden:\n",
        "    if False:\n",
        "tests/features/planning/test_text.py",
    ),
    Mutant(
        0,
        "short names can be told apart",
        "reconciler/features/planning/fitting.py",
        "if len(set(found.values())) > len(set(best.values())):",
        "if not best:",
        "tests/features/planning/test_fitting.py",
    ),
    Mutant(
        0,
        "a round time that the clocks skip has no label",
        "reconciler/features/planning/timeline.py",
        "if moment.astimezone(zone).replace(tzinfo=None) == wall:",
        "if True:",
        "tests/features/planning/test_timeline.py",
    ),
    Mutant(
        0,
        "a column that is open for some of its time is open",
        "reconciler/features/planning/timeline.py",
        "last = -((self.start - end) // self.step)",
        "last = (end - self.start) // self.step",
        "tests/features/planning/test_timeline.py",
    ),
    Mutant(
        0,
        "a person who wants no colours gets none",
        "jobs/runtime/screen.py",
        'not os.environ.get("NO_COLOR") and ',
        "",
        "tests/jobs/test_screen.py",
    ),
)
