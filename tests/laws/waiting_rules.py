"""The rules of law 17: how a drain and the watches get by without a message that is lost."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_ONE = "reconciler/drain/drainer/one.py"
_CORE = "reconciler/drain/drainer/core.py"

WAITING_RULES = (
    Mutant(
        0,
        "a pod's hook ends before the first of two dates",
        "reconciler/profiles/orders.py",
        "    return min(found, default=None)",
        "    return max(found, default=None)",
        "tests/profiles/test_orders.py",
    ),
    Mutant(
        17,
        "the pods are read after a pod's grace period",
        _ONE,
        "if gone is not None and self._read_at < gone < due:",
        "if False:",
    ),
    Mutant(
        17,
        "the pods are read again in any case",
        _ONE,
        "due = self._read_at + self.limits.reread_every",
        "due = self._read_at + timedelta(days=1)",
    ),
    Mutant(17, "a late event brings no pod back", _ONE, "if pod.uid in self._gone:", "if False:"),
    Mutant(
        17,
        "an old event does not hide a deletion",
        _ONE,
        "if tracked is not None and tracked.pod.deleting_until is not None and pod.deleting_until is None:",
        "if False:",
    ),
    Mutant(
        17,
        "a list brings no pod back that went meanwhile",
        _ONE,
        "self._gone -= listed - self._gone_since_read",
        "self._gone -= listed",
    ),
    Mutant(
        17,
        "a list finds a pod whose end was reported wrongly",
        _ONE,
        "        self._gone -= listed - self._gone_since_read\n",
        "",
    ),
    Mutant(
        17,
        "a pod that is newer than the list stays",
        _ONE,
        "self._forget_all_but(listed | self._seen_since_read)",
        "self._forget_all_but(listed)",
    ),
    Mutant(
        17,
        "a list that is too old ends no drain",
        _ONE,
        " and not listed & self._gone_since_read",
        "",
    ),
    Mutant(
        17,
        "a list counts without a watch",
        _ONE,
        "        self.listed = True\n        # A list",
        "        # A list",
    ),
    Mutant(
        17,
        "after a refusal the pause counts, whatever the watch said",
        "reconciler/drain/drainer/pdb_tracker.py",
        " or budget.key in self._refusals",
        "",
    ),
    Mutant(
        17,
        "a watch lists again",
        "reconciler/kubernetes/watching.py",
        "self._list_at = time.monotonic() + RELIST_EVERY",
        "self._list_at = float('inf')",
    ),
    Mutant(
        17,
        "a list of a watch shows what is gone",
        "reconciler/kubernetes/watching.py",
        "                del self._known[uid]\n                yield False, value\n",
        "                del self._known[uid]\n",
    ),
    Mutant(
        17,
        "evictions do not wait for silent budgets",
        _CORE,
        "(not self._unlisted or self._budgets_due <= now)",
        "not self._unlisted",
    ),
    Mutant(
        0,
        "a rule is stronger than a word to an autoscaler",
        "reconciler/drain/filters.py",
        "    if rule_for(pod, around.options.rules, around.namespaces) is not None:\n        return _FINE\n",
        "",
        "tests/drain/test_survey.py",
    ),
    Mutant(
        0,
        "a pod that asks an autoscaler to finish is waited for",
        "reconciler/drain/filters.py",
        "    _others_word,\n",
        "",
        "tests/drain/test_survey.py",
    ),
    Mutant(
        17,
        "no pod waits on a node that is lost at any moment",
        "reconciler/profiles/orders.py",
        "*([begun] if undated else [])",
        "*([])",
        "tests/profiles/test_orders.py",
    ),
)
