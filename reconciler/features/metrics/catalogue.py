"""Every family of metrics, but those of features. To add one, add it here, and a row in docs/metrics.md."""

from __future__ import annotations

from jobs.runtime.metrics import Family, Type

PREFIX = "node_maintenance_"


_OURS: list[Family] = []


def _listed(family: Family) -> Family:
    _OURS.append(family)
    return family


def _gauge(name: str, text: str, *labels: str, unit: str = "") -> Family:
    return _listed(Family(PREFIX + name, Type.GAUGE, text, labels, unit))


def _counter(name: str, text: str, *labels: str) -> Family:
    return _listed(Family(PREFIX + name, Type.COUNTER, text, labels))


def _histogram(name: str, text: str, *labels: str, bounds: tuple[float, ...]) -> Family:
    return _listed(Family(PREFIX + name, Type.HISTOGRAM, text, labels, "seconds", bounds))


_SECONDS = "seconds"

BUILD_INFO = _gauge("build_info", "The version of the program and of Python; always 1.", "version", "python")
SETTINGS_INFO = _gauge(
    "settings_info", "The settings in force, and the cluster; always 1.", "hash", "mode", "cluster"
)
SETTINGS_GOOD = _gauge(
    "settings_good", "1 if the settings file can be used, 0 while it is rejected and earlier settings apply."
)
SETTINGS_LOADED = _gauge(
    "settings_loaded_timestamp_seconds", "When the settings in force were loaded.", unit=_SECONDS
)
LOCK_HELD = _gauge("lock_held", "1 if this process holds the lock, so that it acts.")
OTHER_RECONCILER = _gauge(
    "other_reconciler",
    "1 for each other reconciler that acts on the same nodes, by the namespace of its lock.",
    "namespace",
)
PASSES = _counter("passes_total", "Passes by their result.", "result")
PASS_DURATION = _histogram(
    "pass_duration_seconds",
    "How long a pass took, without those of a standby.",
    bounds=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)
PASS_LAST_SUCCESS = _gauge(
    "pass_last_success_timestamp_seconds", "When the last successful pass ended.", unit=_SECONDS
)
PASS_NODES = _gauge("pass_nodes", "Managed nodes in the last pass.")
NODES = _gauge("nodes", "Managed nodes by their state after the last pass.", "state")
PROFILE_NODES = _gauge(
    "profile_nodes", "Managed nodes of a workflow by its state after the last pass.", "profile", "state"
)
NODE_STATE = _gauge(
    "node_state", "The state of a node with a case or a hold; always 1.", "node", "pool", "zone", "state"
)
NODE_HOLD = _gauge("node_hold", "A reason why nothing happens to a node now; always 1.", "node", "code")
NODE_HOLD_SINCE = _gauge(
    "node_hold_since_timestamp_seconds",
    "When a person gave the hold, else since when this process has seen it without a break.",
    "node",
    "code",
    unit=_SECONDS,
)
PLATFORM_TIME = _gauge(
    "case_platform_time_timestamp_seconds",
    "The earliest moment at which the platform may start the maintenance of a case.",
    "node",
    "kind",
    unit=_SECONDS,
)
LATEST_START = _gauge(
    "case_latest_start_timestamp_seconds",
    "The last allowed moment for the start of a case's drain; the deadline once it has begun.",
    "node",
    "kind",
    unit=_SECONDS,
)
PLANNED_START = _gauge(
    "case_planned_start_timestamp_seconds",
    "When the drain of a case starts if nothing changes, or when it started.",
    "node",
    "kind",
    unit=_SECONDS,
)
WILL_BE_MISSED = _gauge(
    "case_will_be_missed", "1 if the node of a case will not be drained in time.", "node", "kind"
)
AT_RISK = _gauge(
    "case_at_risk",
    "1 if the node of a case may not be drained in time, which depends on what may or may not change.",
    "node",
    "kind",
)
UNGUARDED = _gauge(
    "unguarded",
    "A node with maintenance that nobody drains, or brings back, and the reason; always 1.",
    "node",
    "kind",
    "why",
)
BLOCKED_PODS = _gauge(
    "blocked_pods",
    "Pods that block a drain, by the PodDisruptionBudget that refuses; it is empty for other reasons.",
    "node",
    "namespace",
    "budget",
)
DRAINS_RUNNING = _gauge("drains_running", "Drains that this process runs.")
DRAINS = _counter("drains_total", "Drains that have ended, by their result.", "result")
DRAIN_DURATION = _histogram(
    "drain_duration_seconds",
    "How long drains took that ended with an empty node.",
    bounds=(10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200),
)
EVICTIONS_REFUSED = _counter(
    "evictions_refused_total", "Evictions that were refused, by the reason.", "reason"
)
CASES = _counter("cases_total", "Cases that have ended, by what became of them.", "kind", "outcome")
CASE_MISSED = _gauge(
    "case_missed_timestamp_seconds",
    "When a case ended whose node was not drained in time; for an hour.",
    "node",
    "kind",
    "outcome",
    unit=_SECONDS,
)
BUDGET_PLACES = _gauge("budget_places", "How many nodes may be out of service at once.")
BUDGET_PLACES_TAKEN = _gauge("budget_places_taken", "How many nodes are out of service.")
SOURCE_LAST_ANSWER = _gauge(
    "source_last_answer_timestamp_seconds",
    "The last answer of a source about any node.",
    "source",
    unit=_SECONDS,
)
SOURCE_UNREADABLE_NODES = _gauge(
    "source_unreadable_nodes", "Nodes about which a source gives no usable answer.", "source"
)
SOURCE_ANSWERS = _counter(
    "source_answers_total", "Answers of a source about one node, in each pass.", "source", "result"
)
API_REQUESTS = _counter(
    "api_requests_total", "Requests by their HTTP method and status.", "api", "verb", "status"
)
API_REQUEST_DURATION = _histogram(
    "api_request_duration_seconds",
    "The time from a request to the headers of its answer.",
    "api",
    bounds=(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
NOTICES = _counter("notices_total", "Attempts to send notices.", "transport", "result")
NOTICES_WAITING = _gauge("notices_waiting", "Messages that wait to be sent.")
UNEXPECTED_ERRORS = _counter("unexpected_errors_total", "Errors in this program, see its log.")
LOG_LINES_DROPPED = _counter("log_lines_dropped_total", "Lines of the log that nobody read in time.")

FAMILIES = tuple(_OURS)
"""All of them, in the order of docs/metrics.md."""
