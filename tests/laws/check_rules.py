"""Rules of the checks of workflows, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_CHECKS = "reconciler/workflows/checks"
_TESTS = "tests/workflows/checks"
_TIMES = "reconciler/workflows/weekly_times.py"

CHECK_RULES = (
    Mutant(
        19,
        "a node whose data can't be read counts as in maintenance",
        "reconciler/workflows/input.py",
        "return bool(self.problem) or State.IN_MAINTENANCE in states",
        "return State.IN_MAINTENANCE in states",
        f"{_TESTS}/test_max_maintenance.py",
    ),
    Mutant(
        19,
        "a node that an event of the platform has taken counts as in maintenance",
        "reconciler/workflows/input.py",
        "states = (self.data.worst, self.platform)",
        "states = (self.data.worst,)",
        f"{_TESTS}/test_max_maintenance.py",
    ),
    Mutant(
        19,
        "maxMaintenance passes below the limit only",
        f"{_CHECKS}/max_maintenance.py",
        "if len(counted) < config.max:",
        "if len(counted) <= config.max:",
        f"{_TESTS}/test_max_maintenance.py",
    ),
    Mutant(
        19,
        "a Lease that a node takes is taken for the next node of the pass",
        "reconciler/model/check_reads.py",
        "{**self.leases, take.ref: held}",
        "{**self.leases}",
        f"{_TESTS}/test_stagger.py",
    ),
    Mutant(
        5,
        "a Lease that can't be read is not free",
        f"{_CHECKS}/stagger.py",
        "if ref not in given.read.leases:\n            continue",
        "if ref not in given.read.leases:\n            return ref",
        f"{_TESTS}/test_stagger.py",
    ),
    Mutant(
        5,
        "a version that can't be read is unknown, so that its opposite does not pass",
        f"{_CHECKS}/cluster_semver.py",
        'return unknown(f"the label {config.key} is {text!r}, which',
        'return failed(f"the label {config.key} is {text!r}, which',
        f"{_TESTS}/test_cluster_semver.py",
    ),
    Mutant(
        5,
        "a query without an answer is unknown",
        f"{_CHECKS}/prometheus_instant.py",
        'return unknown(f"{said}: {answer.problem}")',
        'return failed(f"{said}: {answer.problem}")',
        f"{_TESTS}/test_prometheus_instant.py",
    ),
    Mutant(
        5,
        "a value that is no number is unknown",
        f"{_CHECKS}/prometheus_instant.py",
        "if math.isnan(value):",
        "if False:",
        f"{_TESTS}/test_prometheus_instant.py",
    ),
    Mutant(
        5,
        "a source that can't be read may hide an event from scheduledEvent",
        f"{_CHECKS}/scheduled_event.py",
        "if given.silent:",
        "if False:",
        f"{_TESTS}/test_platform.py",
    ),
    Mutant(
        4,
        "the check window heeds freezes",
        f"{_CHECKS}/window.py",
        "if openness.open else",
        "if openness.window or openness.not_allowed else",
        f"{_TESTS}/test_platform.py",
    ),
    Mutant(
        0,
        "an excluded date ends a window that began before it",
        _TIMES,
        "if cut else",
        "if False else",
        f"{_TESTS}/test_time_window.py",
    ),
    Mutant(
        0,
        "a wait goes on after excluded days",
        _TIMES,
        "if left < midnight - moment:",
        "if left <= midnight - moment:",
        f"{_TESTS}/test_wait_exclude.py",
    ),
    Mutant(
        0,
        "an expression binds as gval does",
        "reconciler/model/value_expression.py",
        "self.part(max(_BINDS.values()))",
        "self.part(0)",
        "tests/model/test_value_expression.py",
    ),
    Mutant(
        16,
        "an expression is not nested deeper than Python can count",
        "reconciler/model/value_expression.py",
        "if self._depth > _DEEPEST:",
        "if False:",
        "tests/model/test_value_expression.py",
    ),
    Mutant(
        18,
        "what a pod prefers has a limit",
        "reconciler/clients/kubernetes/wire/reducing.py",
        "islice(ours, PREFERENCES)",
        "islice(ours, None)",
        "tests/clients/kubernetes/test_memory.py",
    ),
)
