"""Mutants of laws 13 and 16: the limits of data from outside, and the boundary around each node."""

from __future__ import annotations

from tests.laws.mutant import Mutant

LIMIT_RULES = (
    Mutant(
        13,
        "JSON may be deeper than the parser",
        "reconciler/model/limits.py",
        "except RecursionError as error:",
        "except ZeroDivisionError as error:",
        "tests/model/test_limits.py",
    ),
    Mutant(
        16,
        "a moment has limits",
        "reconciler/model/limits.py",
        "        if EARLIEST <= found <= LATEST:",
        "        if found:",
        "tests/model/test_limits.py",
    ),
    Mutant(
        16,
        "a condition's times have limits",
        "reconciler/model/node.py",
        "moment is not None and not limits.is_moment(moment)",
        "moment is None and limits.is_moment(moment)",
        "tests/model/test_limits.py",
    ),
    Mutant(
        16,
        "an annotation has a limit",
        "reconciler/model/limits.py",
        "    if len(value) > most:\n        raise",
        "    if len(value) < 0:\n        raise",
        "tests/model/test_limits.py",
    ),
    Mutant(
        16,
        "halves of surrogate pairs are replaced",
        "reconciler/model/limits.py",
        'return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")',
        "return value",
        "tests/model/test_limits.py",
    ),
    Mutant(
        16,
        "a number has a limit of digits",
        "reconciler/model/limits.py",
        "int(digits) if len(digits) <= _DIGITS else float(digits)",
        "int(digits)",
        "tests/model/test_limits.py",
    ),
    Mutant(
        16,
        "an unreadable heartbeat is unknown",
        "reconciler/sources/node_condition.py",
        'if "heartbeat" in condition.unreadable:',
        'if "nothing" in condition.unreadable:',
        "tests/sources/test_limits.py",
    ),
    Mutant(
        16,
        "a record's counts have limits",
        "reconciler/model/record_text.py",
        'limits.count(document["removals"])',
        'int(document["removals"])',
        "tests/sources/test_limits.py",
    ),
    Mutant(
        16,
        "an event that is not published is reported",
        "reconciler/sources/imds.py",
        "    if more == 0:",
        "    if more != -1:",
        "tests/sources/test_limits.py",
    ),
    Mutant(
        16,
        "the agent publishes no more than is read",
        "reconciler/sources/imds.py",
        "if len(kept) < limits.EVENTS and size + more <= limits.ANNOTATION:",
        "if len(kept) >= 0:",
        "tests/sources/test_limits.py",
    ),
    Mutant(
        16,
        "a time in JSON breaks no list",
        "reconciler/clients/kubernetes/wire/reducing.py",
        "    except ValueError:\n        return limits.UNREADABLE",
        "    except ZeroDivisionError:\n        return limits.UNREADABLE",
        "tests/sources/test_limits.py",
    ),
)
