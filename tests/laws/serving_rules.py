"""Rules of the processes that run for long, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_HEALTH = "jobs/runtime/health.py"
_HEALTH_TEST = "tests/jobs/test_health.py"
_LINE = "jobs/runtime/log_line.py"
_LOGS_TEST = "tests/jobs/test_logs.py"

SERVING_RULES = (
    Mutant(
        0,
        "probes have a limit of connections",
        _HEALTH,
        "if len(self._clients) >= MOST_CONNECTIONS:",
        "if False:",
        _HEALTH_TEST,
    ),
    Mutant(0, "a probe has a deadline", _HEALTH, "if client.until > now:", "if True:", _HEALTH_TEST),
    Mutant(
        0,
        "a probe has a limit of size",
        _HEALTH,
        "if whole or len(client.received) > LARGEST_REQUEST:",
        "if whole:",
        _HEALTH_TEST,
    ),
    Mutant(
        0,
        "log lines have no lone surrogates",
        _LINE,
        'return _SURROGATES.sub("\\ufffd", cut)',
        "return cut",
        _LOGS_TEST,
    ),
    Mutant(0, "log lines are short", _LINE, "if len(line.encode()) <= LARGEST_LINE:", "if True:", _LOGS_TEST),
    Mutant(0, "log lines have no terminal codes", _LINE, "if line.isprintable():", "if True:", _LOGS_TEST),
    Mutant(
        0,
        "numbers of any size are logged",
        _LINE,
        "wide = value.bit_length() > _WIDEST_NUMBER",
        "wide = False",
        _LOGS_TEST,
    ),
)
