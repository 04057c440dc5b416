"""Rules of requests, limited reports and explanations, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_REQUEST = "reconciler/sources/request/writing.py"
_REQUESTED = "tests/sources/request/test_writing.py"
_LIMITED = "reconciler/report/limited.py"

REQUEST_RULES = (
    Mutant(
        0,
        "a different request is not overwritten",
        _REQUEST,
        "        if not replace:\n",
        "        if False:\n",
        _REQUESTED,
    ),
    Mutant(
        0,
        "the same request is not written again",
        _REQUEST,
        "        if _same(before, request):\n",
        "        if False:\n",
        _REQUESTED,
    ),
    Mutant(
        0,
        "a request on a node that no pass looks at is refused",
        _REQUEST,
        "    if not settings.in_fleet(node.labels):\n",
        "    if False:\n",
        _REQUESTED,
    ),
    Mutant(
        0,
        "a request is for the future",
        "reconciler/calendar/moments_ahead.py",
        "    if moment <= now:\n",
        "    if False:\n",
        _REQUESTED,
    ),
    Mutant(
        0,
        "nothing of a request is cut",
        _REQUEST,
        "            if len(text) > most:\n",
        "            if False:\n",
        _REQUESTED,
    ),
    Mutant(
        0,
        "a planned drain has not begun",
        _LIMITED,
        "node.urgency is not None and node.before is not State.IN_MAINTENANCE",
        "node.urgency is not None",
        "tests/report/test_limited.py",
    ),
    Mutant(
        0,
        "a filter that hides every row does not make the cluster quiet",
        "reconciler/report/text.py",
        'document["filter"]["of"] if document["filter"] else 0',
        "0",
        "tests/report/test_limited.py",
    ),
    Mutant(
        0,
        "budgets that could not be seen refuse nothing and allow nothing",
        "reconciler/report/explained.py",
        '"budgets": None if unseen else',
        '"budgets": None if False else',
        "tests/report/test_explained.py",
    ),
    Mutant(
        0,
        "pods that could not be seen are not taken for an empty node",
        "reconciler/report/explain/nodes.py",
        "    if PODS in unseen:\n",
        "    if False:\n",
        "tests/report/explain/test_nodes.py",
    ),
    Mutant(
        0,
        "a node without an event has no obstacles",
        "reconciler/report/explain/nodes.py",
        "if drain is not None and not assumed else ()",
        "if drain is not None else ()",
        "tests/report/explain/test_nodes.py",
    ),
    Mutant(
        0,
        "the drain is explained for the events of the node",
        "reconciler/report/explain/nodes.py",
        '    return (events, "") if events else',
        '    return (events, "") if False else',
        "tests/report/explain/test_nodes.py",
    ),
    Mutant(
        0,
        "after a refusal of the credentials no other request is tried",
        "jobs/commands/request.py",
        "isinstance(error, Unreachable | Unauthorized)",
        "False",
        "tests/jobs/test_request.py",
    ),
)
