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

_LOG = "jobs/runtime/logs.py"
_LOG_TEST = "tests/jobs/test_pass_log.py"
_SWEEP_TEST = "tests/jobs/test_sweep_passes.py"
_BY_HAND = "jobs/runtime/events_by_hand.py"
_BY_HAND_TEST = "tests/jobs/test_events_by_hand.py"
_OUTPUT = "jobs/runtime/output_file.py"
_REPORT_TEST = "tests/jobs/test_report.py"
_CONFIG_MAPS = "reconciler/clients/kubernetes/config_maps.py"
_SERVING_TEST = "tests/jobs/test_serving.py"
_SOURCE_TEST = "tests/jobs/test_settings_source.py"

SERVING_RULES = (
    Mutant(
        0,
        "a signal ends the wait of the main thread, whichever thread gets it",
        "jobs/runtime/signals.py",
        "while not stop.wait(LOOK_EVERY):",
        "while not stop.wait():",
        "tests/jobs/test_signals.py",
    ),
    Mutant(
        0,
        "a moment of the plan that comes while the pass runs starts the next pass",
        "jobs/commands/serve.py",
        "return None if change is None else max((change - self._clock.now()).total_seconds(), 0.0)",
        "left = None if change is None else (change - self._clock.now()).total_seconds()\n"
        "        return left if left is not None and left > 0 else None",
        _SERVING_TEST,
    ),
    Mutant(
        0,
        "a start without settings writes an Event",
        "jobs/commands/serve.py",
        "        warn_of_no_settings(error, target)\n",
        "",
        _SERVING_TEST,
    ),
    Mutant(
        0,
        "an Event that can't be written hides no mistake in the settings",
        "jobs/runtime/settings_warning.py",
        "except Exception as failure:",
        "except ZeroDivisionError as failure:",
        _SERVING_TEST,
    ),
    Mutant(
        0,
        "a line about a node is news",
        _LOG,
        "if not now.repeats(self._told.get(node.node)):",
        "if True:",
        _LOG_TEST,
    ),
    Mutant(
        0,
        "a duration that counts is no news",
        _LOG,
        'return _DURATION.sub("#", text)',
        "return text",
        _LOG_TEST,
    ),
    Mutant(
        0,
        "an action that fails again is logged once",
        _LOG,
        "if _steady(one.detail) != self._notable.get(key):",
        "if True:",
        _LOG_TEST,
    ),
    Mutant(
        0,
        "a sweep tells what all of its passes did",
        "jobs/commands/sweep.py",
        "self.document = document if self.document is None else summed(self.document, document)",
        "self.document = document",
        _SWEEP_TEST,
    ),
    Mutant(
        0,
        "a sweep tells what it did before an error",
        "jobs/commands/sweep.py",
        "    finally:\n        # Also after an error",
        "    except KeyboardInterrupt:\n        # Also after an error",
        _SWEEP_TEST,
    ),
    Mutant(
        0,
        "what held a node in an earlier pass no longer counts",
        "reconciler/report/summed.py",
        'return {**node, "holds": [], "unknown": [], "checks": []}',
        "return node",
        _SWEEP_TEST,
    ),
    Mutant(
        0,
        "a drain by hand goes on without the permission for Events",
        _BY_HAND,
        "self._off = True",
        "raise",
        _BY_HAND_TEST,
    ),
    Mutant(0, "one missing permission is said once", _BY_HAND, "if self._off:", "if False:", _BY_HAND_TEST),
    Mutant(
        0,
        "a report replaces its file in one step",
        _OUTPUT,
        "fresh = target.with_name(",
        "fresh = target or target.with_name(",
        _REPORT_TEST,
    ),
    Mutant(
        0,
        "a pipe is not replaced by a file",
        _OUTPUT,
        "if path.exists() and not stat.S_ISREG(path.stat().st_mode):",
        "if False:",
        _REPORT_TEST,
    ),
    Mutant(
        0,
        "the settings of a ConfigMap are our key if it has several",
        _CONFIG_MAPS,
        "if KEY in known:",
        "if False:",
        _SOURCE_TEST,
    ),
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
        "a line for people is in one zone",
        "reconciler/report/text.py",
        "safe.line(in_zone(line, zone))",
        "safe.line(line)",
        "tests/report/test_zones.py",
    ),
    Mutant(
        0,
        "Events are in the zone of the settings",
        "reconciler/notifiers/registry.py",
        "zone=settings.time_zone",
        "",
        "tests/notifiers/test_kubernetes_events.py",
    ),
    Mutant(
        0,
        "what failed is not reported as done",
        "reconciler/report/text.py",
        "_node(node, _undone(document, node),",
        "_node(node, [],",
        "tests/report/test_would.py",
    ),
    Mutant(
        0,
        "a dry run logs no action as done",
        "jobs/runtime/logs.py",
        "_not_done(node, fields) if rehearsed else fields",
        "fields",
        _LOGS_TEST,
    ),
    Mutant(
        0,
        "a step has the words of its checks",
        "reconciler/engine/expression.py",
        "return _supporters(part, answer, wanted=_OPPOSITE[wanted])",
        "return []",
        "tests/engine/test_words.py",
    ),
    Mutant(
        0,
        "an override names where a pod is kept",
        "reconciler/settings/schema.py",
        "if meaning is not None and (not found or getattr(meaning, field) is not None):",
        "if meaning is not None and not found:",
        "tests/engine/test_orders.py",
    ),
    Mutant(
        0,
        "the pods that stay are read until the case ends",
        "reconciler/observe.py",
        " or one.keeps_pods",
        "",
        "tests/decide/test_kept_pods.py",
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
