"""The rules of the comparison of policies: what is played, when a pass runs, and what is counted."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_PLAY = "reconciler/features/simulate/play.py"
_SCORER = "reconciler/features/simulate/scorer.py"
_PARTIAL = "reconciler/simulation/partial_api.py"
_TEST = "tests/features/simulate/test_play.py"

SIMULATE_RULES = (
    Mutant(
        0,
        "a pass runs when a plan changes by time",
        _PLAY,
        "        due = plan.next_change\n",
        "        due = None\n",
        _TEST,
    ),
    Mutant(
        0,
        "a pass that gives up a place is followed by another one",
        _PLAY,
        "            if not (self._api.news and _frees(plan)):\n",
        "            if True:\n",
        _TEST,
    ),
    Mutant(
        0,
        "a change of a node that is decided on is news",
        _PARTIAL,
        "if labels is not None and labels == before:",
        "if labels == before:",
        _TEST,
    ),
    Mutant(
        0,
        "a node in the budget is not left out",
        _PARTIAL,
        "        return rests(shown, replace(found, events=()), self._settings)\n",
        "        return True\n",
        _TEST,
    ),
    Mutant(
        0,
        "nodes that are left out count in the budget",
        "reconciler/profiles/budget.py",
        "            fleet += one.count\n",
        "",
        _TEST,
    ),
    Mutant(
        0,
        "pods on the node at the start are a miss",
        _SCORER,
        "self._in_time(played.event) if empty else Fate.MISSED",
        "self._in_time(played.event) if empty else Fate.IN_WINDOW",
        _TEST,
    ),
    Mutant(
        0,
        "a drain that ends after the date is late",
        _SCORER,
        "        if emptied.at > event.not_before:\n            return Fate.LATE\n",
        "",
        _TEST,
    ),
    Mutant(
        0,
        "a wait for a place counts once",
        _SCORER,
        "len(held - self._counted)",
        "len(held)",
        _TEST,
    ),
    Mutant(
        0,
        "a node is empty until it is uncordoned",
        _SCORER,
        "        if not node.unschedulable:\n            self._filled(node.name)\n",
        "",
        _TEST,
    ),
    Mutant(
        0,
        "a cancelled case is cancelled again",
        "reconciler/features/simulate/recorded.py",
        "gone if case.outcome is CaseResult.CANCELLED and gone > at else None",
        "None",
        "tests/features/simulate/test_recorded.py",
    ),
    Mutant(
        0,
        "a history with a broken line is not played",
        "jobs/commands/simulate.py",
        "    if lines.mistakes:\n",
        "    if False:\n",
        "tests/jobs/test_simulate.py",
    ),
)
