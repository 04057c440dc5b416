"""Rules of the processes that run for long, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_HEALTH = "jobs/runtime/health.py"
_HEALTH_TEST = "tests/jobs/test_health.py"
_LOOP = "jobs/runtime/pass_loop.py"
_LOOP_TEST = "tests/jobs/test_pass_loop.py"
_PACING = "jobs/runtime/pacing.py"
_PACING_TEST = "tests/jobs/test_pacing.py"
_WATCHING = "reconciler/clients/kubernetes/watching.py"
_WATCHING_TEST = "tests/real/clients/test_watching.py"
_LINE = "jobs/runtime/log_line.py"
_PRINTABLE = "reconciler/model/printable.py"
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
    Mutant(
        0, "log lines have no terminal codes", _PRINTABLE, "if text.isprintable():", "if True:", _LOGS_TEST
    ),
    Mutant(
        0,
        "numbers of any size are logged",
        _LINE,
        "wide = value.bit_length() > _WIDEST_NUMBER",
        "wide = False",
        _LOGS_TEST,
    ),
    Mutant(
        0,
        "what keeps changing waits a second",
        _PACING,
        "return max(soon, self._began + self._rest)",
        "return soon",
        _PACING_TEST,
    ),
    Mutant(
        0,
        "an urgent node that keeps changing waits a second",
        _PACING,
        'return max(soon, self._served.get(cause, float("-inf")) + APART)',
        "return soon",
        _PACING_TEST,
    ),
    Mutant(
        0,
        "an urgent change waits for no other node",
        _PACING,
        "        if cause.urgent:\n            return",
        "        if False:\n            return",
        _PACING_TEST,
    ),
    Mutant(0, "a first change is at once", _PACING, "if wish.first:", "if False:", _PACING_TEST),
    Mutant(
        0,
        "first changes of many nodes have a limit",
        _PACING,
        "if first and not cause.urgent and self._first_used_up(now):",
        "if False:",
        _PACING_TEST,
    ),
    Mutant(
        0,
        "long passes leave time to other work",
        _PACING,
        "max(APART, 2 * (now - self._began))",
        "APART",
        _PACING_TEST,
    ),
    Mutant(
        0,
        "an error of a pass does not end the loop",
        _LOOP,
        "            if not can_be_repeated(error):\n                raise\n",
        "            raise\n",
        _LOOP_TEST,
    ),
    Mutant(
        0,
        "an exhausted memory ends the process",
        "jobs/runtime/supervised.py",
        " and not isinstance(error, MemoryError)",
        "",
        _LOOP_TEST,
    ),
    Mutant(
        0,
        "a failing pass makes the process unready",
        _LOOP,
        "if self._trouble is not None:",
        "if False:",
        _LOOP_TEST,
    ),
    Mutant(
        0,
        "a watch that ends begins again",
        "jobs/runtime/supervised.py",
        'raise RuntimeError("it ended by itself")',
        "return",
        "tests/jobs/test_supervised.py",
    ),
    Mutant(
        0,
        "a broken watch is reported",
        "jobs/commands/serve.py",
        "self._nodes.trouble(),",
        "",
        "tests/jobs/test_serving.py",
    ),
    Mutant(
        0,
        "rejected settings are reported",
        "jobs/commands/serve.py",
        "            self._file.mistake(),",
        "",
        "tests/jobs/test_serving.py",
    ),
    Mutant(
        0,
        "rejected settings are an Event",
        "jobs/commands/serve.py",
        "self._warning.report(self._file.mistake())",
        "pass",
        "tests/jobs/test_serving.py",
    ),
    Mutant(
        0,
        "a file that is empty for a moment changes nothing",
        "jobs/runtime/settings_file.py",
        "if not content and not self._settled():",
        "if False:",
        "tests/jobs/test_settings_file.py",
    ),
    Mutant(
        0,
        "one Event an hour about rejected settings",
        "jobs/runtime/settings_warning.py",
        "wait = REPEAT if mistake == self._written else APART",
        "wait = APART",
        "tests/jobs/test_settings_warning.py",
    ),
    Mutant(
        0,
        "a watch lists again after a bounded time",
        _WATCHING,
        "self._list_at = time.monotonic() + RELIST_EVERY",
        'self._list_at = float("inf")',
        _WATCHING_TEST,
    ),
    Mutant(
        0,
        "an object that cannot be read does not end a watch",
        _WATCHING,
        "                        self._skip(event, error)\n",
        "                        raise\n",
        _WATCHING_TEST,
    ),
    Mutant(
        0,
        "an object that cannot be read is listed again",
        _WATCHING,
        "            self._list_at = list_at\n",
        "",
        _WATCHING_TEST,
    ),
    Mutant(
        0,
        "an unexpected error does not end the agent",
        "jobs/agent/program.py",
        "        except MemoryError:\n            raise\n        except Exception as error:",
        "        except ZeroDivisionError as error:",
        "tests/agent/test_agent.py",
    ),
    Mutant(
        0,
        "a server may ask for an hour at most",
        "reconciler/clients/retry_after.py",
        "return min(float(text), LONGEST_WAIT)",
        "return float(text)",
        "tests/clients/test_retry_after.py",
    ),
)
