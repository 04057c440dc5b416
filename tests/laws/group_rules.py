"""The rules of nodes that start together because they run pods of one group."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_SCHEDULE, _TOGETHER = "reconciler/profiles/schedule.py", "reconciler/passes/decide/together.py"
_GROUPS, _DECIDED = "tests/profiles/schedule/test_groups.py", "tests/passes/decide/test_together.py"

GROUP_RULES = (
    Mutant(
        15,
        "a node of a group stands empty for a limited time",
        _SCHEDULE,
        "if timedelta() < before.at - at <= self._limits.together",
        "if timedelta() < before.at - at",
        _GROUPS,
    ),
    Mutant(
        3,
        "a start joins another one only where a place is free",
        _SCHEDULE,
        "if self._free(case, at, at) == at and self._spaced(at) == at:",
        "if self._spaced(at) == at:",
        _GROUPS,
    ),
    Mutant(
        3,
        "starts of a group keep the spacing",
        _SCHEDULE,
        "if self._free(case, at, at) == at and self._spaced(at) == at:",
        "if self._free(case, at, at) == at:",
        _GROUPS,
    ),
    Mutant(
        4,
        "a start joins another one only in its windows",
        _SCHEDULE,
        "            if allowed is None or allowed[0] != at:\n                continue\n",
        "            if allowed is None:\n                continue\n",
        _GROUPS,
    ),
    Mutant(
        0,
        "a node whose mate does not start starts at its own time",
        _TOGETHER,
        "if mate is not None and mate.drain_begins:",
        "if True:",
        _DECIDED,
    ),
    Mutant(
        14,
        "the events of a node that joins may start",
        _TOGETHER,
        "may_start=one.open and start <= now",
        "may_start=one.may_start",
        _DECIDED,
    ),
    Mutant(
        0,
        "what a person put off joins nothing",
        "reconciler/passes/decide/scheduling.py",
        "for each, _ in waiting) and not times.kept",
        "for each, _ in waiting)",
        _DECIDED,
    ),
    Mutant(
        13,
        "groups that can't be read hold no drain",
        "reconciler/passes/observe.py",
        '    except ClusterError as error:\n        return {}, (f"groups',
        '    except Unauthorized as error:\n        return {}, (f"groups',
        _DECIDED,
    ),
    Mutant(
        18,
        "a group moves no pods of another namespace",
        "reconciler/passes/observe.py",
        "for node in shared[:_GROUPED_AT_MOST] if in_one_namespace(reader.pods(node))]",
        "for node in shared[:_GROUPED_AT_MOST]]",
        _DECIDED,
    ),
    Mutant(
        0,
        "groups are read only where two drains may start",
        "reconciler/passes/observe.py",
        "return any(policy is not None and policy.drain for policy in policies)",
        "return any(True for policy in policies)",
        _DECIDED,
    ),
)
