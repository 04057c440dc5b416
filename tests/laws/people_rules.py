"""Rules of what people say about nodes, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_TEXTS = "reconciler/model/instructions.py"
_READ = "tests/model/test_instructions.py"
_WAITS = "reconciler/engine/instructed.py"
_SCHEDULE = "reconciler/schedule.py"
_DECIDED = "tests/decide/test_instructions.py"
_COMMANDS = "tests/jobs/test_instructing.py"

PEOPLE_RULES = (
    Mutant(
        0,
        "a held node is not drained",
        "reconciler/checks/not_held.py",
        "    if hold is None:\n",
        "    if True:\n",
        "tests/checks/test_not_held.py",
    ),
    Mutant(
        0,
        "only a hold with --now stops what runs",
        "reconciler/checks/not_stopped.py",
        "if hold is None or not hold.stops:",
        "if hold is None:",
        "tests/checks/test_not_stopped.py",
    ),
    Mutant(
        0,
        "an event that may not start opens nothing for an event without an approval",
        "reconciler/checks/approved.py",
        "return tuple(one for one in asking if one.open) or asking",
        "return asking",
        "tests/checks/test_approved.py",
    ),
    Mutant(
        0,
        "a drain that runs evicts nothing once a hold with --now was seen",
        "reconciler/drainer/one.py",
        "elif held := stopping_hold(found, self.order.options.prefix, now):",
        "elif held := '':",
        "tests/drainer/test_core.py",
    ),
    Mutant(
        0,
        "a pass stops the drain of a node that is held with --now",
        "reconciler/decide/draining.py",
        "if hold is not None and hold.stops:",
        "if False and hold is not None:",
        _DECIDED,
    ),
    Mutant(
        0,
        "a hold that can't be read is one",
        _TEXTS,
        "        return PersonHold(Word(reason=limits.text(text)))\n",
        "        return None\n",
        _READ,
    ),
    Mutant(
        0,
        "an instruction ends at its end",
        _TEXTS,
        "return self.until is not None and self.until <= now",
        "return False",
        _READ,
    ),
    Mutant(
        0,
        "an approval is for an event with the same name",
        _TEXTS,
        "and (_names(known, event) or (self.case is not None and self.case == case))",
        "and True",
        _READ,
    ),
    Mutant(
        0,
        "an event of a more disruptive kind needs an approval of its own",
        _TEXTS,
        "known.kind.severity >= event.kind.severity\n            and known.matches(event)",
        "known.matches(event)",
        _READ,
    ),
    Mutant(
        0,
        "holds of the ledger that can't be read hold all nodes",
        _TEXTS,
        "        return (PersonHold(Word(scope=ALL, problem=problem)),)\n",
        "        return ()\n",
        _READ,
    ),
    Mutant(
        0,
        "a command is shown only for a scope that is one",
        _TEXTS,
        'return value if isinstance(value, str) and is_scope(value) else ""',
        'return value if isinstance(value, str) else ""',
        _READ,
    ),
    Mutant(
        0,
        "of several holds, the one that stops most applies",
        _TEXTS,
        "key=lambda one: (one.stops, one.word.until or limits.UNREADABLE)",
        "key=lambda one: not one.stops",
        _DECIDED,
    ),
    Mutant(
        0,
        "the deadline wins over a deferral",
        _WAITS,
        "(deferral.word.until, demanded)",
        "(deferral.word.until,)",
        _DECIDED,
    ),
    Mutant(
        0,
        "a drain without an approval proceeds only where the settings say so",
        _WAITS,
        "demanded if policy.approval_missing is ApprovalMissing.PROCEED else None",
        "demanded",
        _DECIDED,
    ),
    Mutant(
        14,
        "a case that a person keeps from a start without an end is planned for no moment",
        _SCHEDULE,
        "            if case.kept_out:\n",
        "            if False:\n",
        _DECIDED,
    ),
    Mutant(
        14,
        "a start is planned for the end of a hold",
        _WAITS,
        "earliest=max(times.earliest, begins), kept=because",
        "earliest=times.earliest, kept=because",
        _DECIDED,
    ),
    Mutant(
        0,
        "the approval of a case goes with its end",
        "reconciler/decide/planned.py",
        "if keys.approved in node.annotations and one.case.open and not case.open:",
        "if False:",
        _DECIDED,
    ),
    Mutant(
        0,
        "a pass keeps the holds that people wrote into the ledger meanwhile",
        "reconciler/model/snapshot.py",
        "ahead=None, holds=before.holds)",
        "ahead=None)",
        "tests/model/test_instructions.py",
    ),
    Mutant(
        0,
        "a hold of a pool replaces only that of the pool",
        "jobs/runtime/instructing.py",
        "if one.word.scope != hold.word.scope and not one.word.ended(scene.now)\n",
        "if False\n",
        _COMMANDS,
    ),
    Mutant(
        0,
        "what is given to all nodes does not end the hold of one node",
        "reconciler/instruct.py",
        "found = [keys.hold_of_many] if",
        "found = [keys.hold] if",
        _COMMANDS,
    ),
)
