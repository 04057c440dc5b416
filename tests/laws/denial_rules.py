"""The rules of evictions that a webhook denies."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_ONE, _CORE, _REFUSALS = (
    "reconciler/drain/drainer/one.py",
    "reconciler/drain/drainer/core.py",
    "reconciler/drain/drainer/refusals.py",
)
_DENIALS = "tests/drain/drainer/test_denials.py"

DENIAL_RULES = (
    Mutant(
        16,
        "a drain that fails gives its budgets back",
        "reconciler/drain/drainer/core.py",
        "            self._pdbs.release(uid)\n        drain.end",
        "            pass\n        drain.end",
        "tests/drain/drainer/test_hostile_pods.py",
    ),
    Mutant(
        0,
        "a denial is known whatever its status",
        _REFUSALS,
        "if isinstance(error, ClusterError) and (denied := _denied(error)) is not None:",
        "if isinstance(error, Rejected) and (denied := _denied(error)) is not None:",
        "tests/drain/drainer/test_refusals.py",
    ),
    Mutant(
        16,
        "a webhook pauses no other eviction",
        _REFUSALS,
        "return bool(error.retry_after) and read_denial(str(error)) is None",
        "return bool(error.retry_after)",
        _DENIALS,
    ),
    Mutant(
        16,
        "a denied pod keeps no other of its budget waiting",
        _ONE,
        "        if tracked.denied_by:\n            # Webhooks",
        "        if False:\n            # Webhooks",
        _DENIALS,
    ),
    Mutant(
        17,
        "a pod that a webhook keeps counts as blocked after a time",
        _ONE,
        "return shifted(tracked.denied_since, self.order.may_be_denied)",
        "return shifted(tracked.denied_since, timedelta(days=1))",
        _DENIALS,
    ),
    Mutant(
        0,
        "a pod that a webhook keeps counts as leaving at first",
        _ONE,
        "        moments += [self._denied_until(tracked) for tracked in remaining]\n",
        "",
        _DENIALS,
    ),
    Mutant(
        17,
        "the time of the denials begins once",
        _ONE,
        "tracked.denied_since = tracked.denied_since or now",
        "tracked.denied_since = now",
        _DENIALS,
    ),
    Mutant(
        17,
        "a webhook does not choose the pause",
        _ONE,
        "pause = max(pause, min(limits.asked_wait(refusal.wait), limits.denied_last))",
        "pause = max(pause, limits.asked_wait(refusal.wait))",
        _DENIALS,
    ),
    Mutant(
        0,
        "a denial does not put off the deletion before the deadline",
        _ONE,
        "tracked.retry_at = min(tracked.retry_at, deletes) if deletes > now else tracked.retry_at",
        "pass",
        _DENIALS,
    ),
    Mutant(
        0,
        "a pod that a webhook may have moved is not told as blocked",
        "reconciler/features/notices/facts.py",
        "[one for one in progress.blockers if not one.leaving]",
        "[*progress.blockers]",
        "tests/features/notices/test_deriving.py",
    ),
    Mutant(
        0,
        "a budget that refuses in the end is waited for",
        _ONE,
        "tracked.denied_by = refusal.denied_by",
        "tracked.denied_by = tracked.denied_by or refusal.denied_by",
        _DENIALS,
    ),
)
