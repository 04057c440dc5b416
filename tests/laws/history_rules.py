"""The rules of the history: what a case keeps, when it is kept, and how its lines are read."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_FACTS = "reconciler/decide/facts.py"
_OUTCOME = "reconciler/model/case_outcome.py"
_FILE = "jobs/runtime/case_history.py"
_OPEN = "jobs/runtime/open_cases.py"
_LINES = "jobs/runtime/history_lines.py"
_CASES = "tests/decide/test_history.py"

HISTORY_RULES = (
    Mutant(
        0,
        "a case that ends is kept",
        "reconciler/act.py",
        "    _keep(plan, outside.history)\n",
        "",
        _CASES,
    ),
    Mutant(
        0,
        "the first sight of a case is recorded",
        _FACTS,
        "context.second if not told.open else None",
        "None",
        _CASES,
    ),
    Mutant(
        0,
        "a case that has facts before it opens was seen earlier",
        _FACTS,
        "if replace(told.facts, warned=()) == CaseFacts() and record.state is not told.state:",
        "if record.state is not told.state:",
        _CASES,
    ),
    Mutant(
        0,
        "a process counts only the pods that it moved itself",
        _FACTS,
        "if drain.since < leads.replace(microsecond=0) or (facts.moved is None and not first):",
        "if facts.moved is None and not first:",
        _CASES,
    ),
    Mutant(
        0,
        "the drain of an earlier case moved nothing in this one",
        _FACTS,
        " and drained.finished >= drain.since:",
        ":",
        _CASES,
    ),
    Mutant(
        0,
        "a pass that ends a drain acts",
        "reconciler/decide/planned.py",
        " and record.drain == one.case.drain",
        "",
        _CASES,
    ),
    Mutant(
        0,
        "of an event that is still announced nobody knows the end",
        _OUTCOME,
        "known = case.quiet_since is not None or bool(case.facts.starts) or",
        "known = True or",
        "tests/model/test_case_outcome.py",
    ),
    Mutant(
        0,
        "a drain that ended after the start was not in time",
        _OUTCOME,
        "return InTime.YES if self.drained <= self.started or self.pods == 0 else InTime.NO",
        "return InTime.YES",
        "tests/model/test_case_outcome.py",
    ),
    Mutant(
        0,
        "pods that nobody counted are not known to be met",
        _OUTCOME,
        "case CaseResult.MISSED if self.pods is not None:",
        "case CaseResult.MISSED:",
        "tests/model/test_case_outcome.py",
    ),
    Mutant(
        0,
        "a cordon that stays is no uncordon",
        "reconciler/model/ended_case.py",
        "return not plan.unschedulable or (write is not None and write.unschedulable is False)",
        "return True",
        _CASES,
    ),
    Mutant(
        0,
        "a case whose node is deleted has ended",
        _OPEN,
        "if uid not in plan.uids]",
        "if False]",
        "tests/jobs/test_open_cases.py",
    ),
    Mutant(
        0,
        "a case that was released has not ended with its node",
        _OPEN,
        "if uid not in plan.uids]",
        "if uid not in {one.uid for one in plan.nodes}]",
        "tests/jobs/test_open_cases.py",
    ),
    Mutant(
        0,
        "a case is kept with the request to delete its machine",
        "reconciler/model/ended_case.py",
        "if case is None and (deleted or isinstance(plan.todo.machine, Remove)):",
        "if case is None and deleted:",
        "tests/jobs/test_open_cases.py",
    ),
    Mutant(
        0,
        "a node that was drained before it was deleted was in time",
        _OUTCOME,
        " or (deleted and found.drained is not None)",
        "",
        "tests/jobs/test_open_cases.py",
    ),
    Mutant(
        0,
        "a line that was cut does not spoil the next one",
        _FILE,
        'start = "\\n" if regular and _is_cut(file) else ""',
        'start = ""',
        "tests/jobs/test_case_history.py",
    ),
    Mutant(
        0,
        "a line that is only half written is a failure",
        _FILE,
        "if os.write(file, data) != len(data):",
        "if os.write(file, data) == 0:",
        "tests/jobs/test_case_history.py",
    ),
    Mutant(
        0,
        "a history that can't be written harms no pass",
        _FILE,
        "        except OSError as error:\n            self._failed(",
        "        except KeyError as error:\n            self._failed(",
        "tests/jobs/test_case_history.py",
    ),
    Mutant(
        0,
        "the last line about a case counts",
        _LINES,
        "            if case.times.ended < before.times.ended:\n                return\n",
        "",
        "tests/jobs/test_history.py",
    ),
    Mutant(
        0,
        "a line has a limit",
        _LINES,
        'raise ValueError(f"it is longer than {LONGEST_LINE} bytes")',
        "return",
        "tests/jobs/test_history.py",
    ),
    Mutant(
        0,
        "a clock that went back makes no negative hours",
        "reconciler/report/history.py",
        "max(end - start, timedelta())",
        "end - start",
        "tests/report/test_history.py",
    ),
)
