"""Rules of metrics, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_SAMPLES = "reconciler/features/metrics/samples.py"
_SAMPLES_TEST = "tests/features/metrics/test_samples.py"
_EXPOSITION = "reconciler/features/metrics/exposition.py"
_EXPOSITION_TEST = "tests/features/metrics/test_exposition.py"
_METERING = "jobs/runtime/metering.py"
_METERING_TEST = "tests/jobs/test_metering.py"
_OUTPUT = "jobs/runtime/metrics_output.py"
_OUTPUT_TEST = "tests/jobs/test_metrics_output.py"
_ANSWERS = "reconciler/passes/decide/answers.py"
_SERVING_TEST = "tests/jobs/test_serving.py"

METRIC_RULES = (
    Mutant(
        16,
        "a node that can't be shown harms no other",
        _SAMPLES,
        'shown, _ = guarded(f"node {node.node} has no metrics", partial(_of_node, node, view), ())',
        "shown = _of_node(node, view)",
        _SAMPLES_TEST,
    ),
    Mutant(
        0,
        "a drain that has begun keeps the deadline by which alerts know how urgent it is",
        "reconciler/passes/decide/scheduling.py",
        "CaseSchedule(drain.since, _deadline(one, context), because",
        "CaseSchedule(drain.since, because",
        _SAMPLES_TEST,
    ),
    Mutant(
        18,
        "a node shows a bounded number of PodDisruptionBudgets",
        _SAMPLES,
        "in most[:BUDGETS]:",
        "in most:",
        _SAMPLES_TEST,
    ),
    Mutant(
        0,
        "only a node with a case or a hold has series",
        _SAMPLES,
        "if not has_case(node) and not node.holds:",
        "if False:",
        _SAMPLES_TEST,
    ),
    Mutant(
        0,
        "a pod that a webhook has moved does not count as blocked",
        _SAMPLES,
        "if not one.leaving",
        "if True",
        _SAMPLES_TEST,
    ),
    Mutant(
        0,
        "no hold began in the future",
        _SAMPLES,
        "key: min(before.get(key, plan.now), plan.now)",
        "key: before.get(key, plan.now)",
        _OUTPUT_TEST,
    ),
    Mutant(
        16,
        "no node writes the moment of its source's last answer",
        _ANSWERS,
        "self.last = min(at, now)",
        "self.last = at",
        _SAMPLES_TEST,
    ),
    Mutant(
        0,
        "an answer that failed is no answer",
        _ANSWERS,
        "if not one.problem)",
        "if True)",
        _SAMPLES_TEST,
    ),
    Mutant(
        0,
        "a scrape has no series twice",
        _EXPOSITION,
        "found.setdefault(sample.family, {})[labels] = sample.value",
        "found.setdefault(sample.family, {})[(*labels, len(found))] = sample.value",
        _EXPOSITION_TEST,
    ),
    Mutant(
        16,
        "a label has a limit, and can be encoded",
        _EXPOSITION,
        'return limits.text(value, limits.NAME).encode("utf-8", "replace").decode()',
        "return value",
        _EXPOSITION_TEST,
    ),
    Mutant(
        0,
        "a counter has no series with the moment of its creation",
        _EXPOSITION,
        "disable_created_metrics()  # type",
        "pass  # type",
        _EXPOSITION_TEST,
    ),
    Mutant(
        0,
        "a standby shows no nodes",
        _METERING,
        "self._pass = None\n        self._holds = None if",
        "self._holds = None if",
        _METERING_TEST,
    ),
    Mutant(
        16,
        "a plan that can't be counted ends no pass",
        _METERING,
        'guarded("the pass has no metrics", partial(self._after, plan, drains), None)',
        "self._after(plan, drains)",
        _METERING_TEST,
    ),
    Mutant(
        0,
        "the end of a drain is counted once",
        _METERING,
        "and self._ended.get(node) != end",
        "",
        _METERING_TEST,
    ),
    Mutant(
        0,
        "only a drain that ended with an empty node has a duration",
        _METERING,
        "if one.phase is Phase.DRAINED and",
        "if",
        _METERING_TEST,
    ),
    Mutant(
        0,
        "a kind with an open case has the series of its end",
        _METERING,
        "self._counters.add(catalogue.CASES, kind, outcome.value, by=0)",
        "pass",
        _METERING_TEST,
    ),
    Mutant(
        0,
        "requests are counted only while metrics are shown",
        _METERING,
        "self._open.callback(report_requests(self.request))",
        "report_requests(self.request)",
        _METERING_TEST,
    ),
    Mutant(
        0,
        "a run without a plan leaves the file of the one before",
        _OUTPUT,
        "if self._meter is not None and self._meter.has_plan:",
        "if self._meter is not None:",
        _OUTPUT_TEST,
    ),
    Mutant(
        0,
        "the file is replaced, and a failure to do so ends nothing",
        _OUTPUT,
        "            except OutputError as failure:\n",
        "            except ZeroDivisionError as failure:\n",
        _OUTPUT_TEST,
    ),
    Mutant(
        0,
        "a request that gets no answer is counted, too",
        "reconciler/http/bounded.py",
        "        finally:\n            report(",
        "        except ZeroDivisionError:\n            report(",
        "tests/http/test_reporting.py",
    ),
    Mutant(
        16,
        "whoever gets reports harms no request",
        "reconciler/http/reporting.py",
        "with suppress(Exception):",
        "with suppress():",
        "tests/http/test_reporting.py",
    ),
    Mutant(
        0,
        "a rejected file shows as bad settings",
        "jobs/commands/serve.py",
        "self._counting.settings(good=not self._file.mistake())",
        "pass",
        _SERVING_TEST,
    ),
    Mutant(
        0,
        "a pass while another process has the lock is that of a standby",
        "jobs/commands/serve.py",
        "self._counting.stands_by()",
        "pass",
        _SERVING_TEST,
    ),
    Mutant(
        0,
        "the events of the agent are those of its VM",
        "jobs/agent/program.py",
        "len(self._reported())",
        'len(self._document["Events"])',
        "tests/agent/test_figures.py",
    ),
    Mutant(
        0,
        "a value is in one bucket of a histogram by OTLP",
        "reconciler/features/metrics/otlp.py",
        "count - before for before",
        "count for before",
        "tests/features/metrics/test_otlp.py",
    ),
)
