"""The dashboard for Grafana: `python -m website.dashboard FILE`, or `nox -s docs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from reconciler.features.metrics import catalogue as m
from reconciler.features.metrics.catalogue import Family
from reconciler.model.case_outcome import ENDS, InTime
from reconciler.model.values import replace
from website.panels import (
    DATE,
    Panel,
    Query,
    limits,
    lines,
    names,
    placed,
    stat,
    table,
    words,
)

# Several replicas run, and one of them acts: each expression is about all of them.
_NODE = '{node=~"$node"}'


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    return {
        "uid": "node-maintenance",
        "title": "Node maintenance",
        "description": "What the reconciler does about the maintenance of nodes, and whether it works.",
        "tags": ["node-maintenance"],
        "editable": True,
        "schemaVersion": 39,
        "version": 1,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "templating": {"list": [_datasource(), _node()]},
        "panels": placed(
            (
                ("Is anything wrong?", _wrong()),
                ("What happens next, and what is in the way", _next()),
                ("The fleet", _fleet()),
                ("Drains and the score", _drains()),
                ("Sources", _sources()),
                ("The reconciler", _reconciler()),
            )
        ),
    }


def as_text() -> str:
    """Return the file."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _node() -> dict[str, Any]:
    return {
        "name": "node",
        "label": "Node",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": f"label_values({m.NODE_STATE.name}, node)", "refId": "node"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        # Also nodes without a case, which are in no list.
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _wrong() -> tuple[Panel, ...]:
    bad = limits((None, "green"), (1, "red"))
    return (
        stat(
            "Last successful pass",
            "How long ago. After 10 minutes an alert fires.",
            Query(f"time() - max({m.PASS_LAST_SUCCESS.name})"),
            "s",
            thresholds=limits((None, "green"), (120, "yellow"), (600, "red")),
        ),
        stat(
            "Lock",
            "Whether one of the replicas holds the lock. In mode Observe none needs it.",
            Query(f"max({m.LOCK_HELD.name})"),
            mappings=words(("0", "nobody", "orange"), ("1", "held", "green")),
        ),
        stat(
            "Settings file",
            "Rejected: it has a mistake, and earlier settings apply.",
            Query(f"min({m.SETTINGS_GOOD.name})"),
            mappings=words(("0", "rejected", "red"), ("1", "good", "green")),
        ),
        stat(
            "Nodes that will be missed",
            "Nodes that will not be drained before the platform starts.",
            Query(f"count(max by (node) ({m.WILL_BE_MISSED.name}) == 1) or vector(0)"),
            thresholds=bad,
        ),
        stat(
            "Nodes with a blocked drain",
            "Nodes with pods that can't be evicted now.",
            Query(f"count(max by (node) ({m.BLOCKED_PODS.name}) > 0) or vector(0)"),
            thresholds=limits((None, "green"), (1, "orange")),
        ),
        stat(
            "Unexpected errors",
            "Errors of the program in the time that is shown. The log has each of them.",
            Query(f"sum(increase({m.UNEXPECTED_ERRORS.name}[$__range]))"),
            thresholds=bad,
            decimals=0,
        ),
    )


def _next() -> tuple[Panel, ...]:
    moments = dict.fromkeys(("planned start", "latest start", "platform may start"), DATE)
    return (
        table(
            "Cases",
            "When each drain starts if nothing changes, its last allowed moment, and the platform's time. "
            "Missed is 1 if the node will not be drained in time, at risk if it may not be.",
            Query(f"1000 * max by (node, kind) ({m.PLANNED_START.name}{_NODE})", "planned start"),
            Query(f"1000 * max by (node, kind) ({m.LATEST_START.name}{_NODE})", "latest start"),
            Query(f"1000 * max by (node, kind) ({m.PLATFORM_TIME.name}{_NODE})", "platform may start"),
            Query(f"max by (node, kind) ({m.WILL_BE_MISSED.name}{_NODE})", "missed"),
            Query(f"max by (node, kind) ({m.AT_RISK.name}{_NODE})", "at risk"),
            units=moments,
        ),
        table(
            "Holds",
            "Why nothing happens to a node now, and since when. The docs describe each code.",
            Query(f"1000 * min by (node, code) ({m.NODE_HOLD_SINCE.name}{_NODE})", "since"),
            unit=DATE,
        ),
        table(
            "Blocked pods",
            "Pods that block a drain, by the PodDisruptionBudget. It is empty for other reasons.",
            Query(f"max by (node, namespace, budget) ({m.BLOCKED_PODS.name}{_NODE})", "pods"),
        ),
        table(
            "Nodes with a case or a hold",
            "Their state, pool and zone.",
            Query(f"max by (node, pool, zone, state) ({m.NODE_STATE.name}{_NODE})"),
        ),
    )


def _fleet() -> tuple[Panel, ...]:
    return (
        lines(
            "Nodes by state",
            "Managed nodes.",
            Query(f"max by (state) ({m.NODES.name})", "{{state}}"),
            stacked=True,
        ),
        lines(
            "Places in the budget",
            "How many nodes may be out of service at once, and how many are.",
            Query(f"max({m.BUDGET_PLACES.name})", "places"),
            Query(f"max({m.BUDGET_PLACES_TAKEN.name})", "taken"),
        ),
        lines(
            "Holds by code",
            "How many nodes have this reason to wait.",
            Query(f"count by (code) (max by (node, code) ({m.NODE_HOLD.name}{_NODE}))", "{{code}}"),
            stacked=True,
        ),
    )


def _drains() -> tuple[Panel, ...]:
    cases = m.CASES.name
    in_time = "|".join(one for one in ENDS if one.in_time is InTime.YES)
    known = "|".join(one for one in ENDS if one.in_time is not InTime.UNKNOWN)
    ended = f'sum(increase({cases}{{outcome=~"{known}"}}[$__range]))'
    score = replace(
        stat(
            "Drained in time",
            "The score: cases whose node was drained in time, of those that were drained, late or missed.",
            Query(f'sum(increase({cases}{{outcome="{in_time}"}}[$__range])) / {ended}'),
            "percentunit",
            thresholds=limits((None, "red"), (0.9, "yellow"), (0.99, "green")),
            noValue="no case",
        ),
        height=8,
    )
    return (
        score,
        Panel(
            "Cases that have ended",
            "By what became of them, in the time that is shown.",
            "bargauge",
            (Query(f"sum by (outcome) (increase({cases}[$__range]))", "{{outcome}}"),),
            4,
            8,
            field={"decimals": 0, "min": 0},
            options={"orientation": "horizontal", "reduceOptions": {"calcs": ["lastNotNull"]}},
        ),
        lines(
            "Drains",
            "Drains that run, and those that have ended in an hour.",
            Query(f"sum({m.DRAINS_RUNNING.name})", "running"),
            Query(f"sum by (result) (increase({m.DRAINS.name}[1h]))", "{{result}}"),
        ),
        lines(
            "Time of drains",
            "How long drains took that ended with an empty node, over 6 hours.",
            *_quantiles(m.DRAIN_DURATION, "6h"),
            unit="s",
        ),
        lines(
            "Refused evictions",
            "By the reason, each second.",
            Query(f"sum by (reason) (rate({m.EVICTIONS_REFUSED.name}[$__rate_interval]))", "{{reason}}"),
            unit="reqps",
        ),
    )


def _sources() -> tuple[Panel, ...]:
    return (
        lines(
            "Nodes without a usable answer",
            "By the source. What only this source announces is not seen.",
            Query(f"max by (source) ({m.SOURCE_UNREADABLE_NODES.name})", "{{source}}"),
        ),
        lines(
            "Age of the last answer",
            "The time since a source answered about any node.",
            Query(f"time() - max by (source) ({m.SOURCE_LAST_ANSWER.name})", "{{source}}"),
            unit="s",
        ),
        lines(
            "Answers",
            "One for each node and pass.",
            Query(
                f"sum by (source, result) (rate({m.SOURCE_ANSWERS.name}[$__rate_interval]))",
                "{{source}} {{result}}",
            ),
            unit="cps",
        ),
    )


def _program() -> tuple[Panel, ...]:
    return (
        names(
            "Version",
            "Of the program.",
            Query(f"max by (version, python) ({m.BUILD_INFO.name})", "{{version}}, Python {{python}}"),
        ),
        names(
            "Settings in force",
            "The mode, and the first digits of the hash of the file.",
            Query(f"max by (mode, hash) ({m.SETTINGS_INFO.name})", "{{mode}} {{hash}}"),
        ),
        stat(
            "Settings loaded",
            "When the settings in force were loaded.",
            Query(f"1000 * max({m.SETTINGS_LOADED.name})"),
            DATE,
            thresholds=limits((None, "blue")),
        ),
    )


def _reconciler() -> tuple[Panel, ...]:
    return (
        *_program(),
        stat(
            "Managed nodes",
            "In the last pass.",
            Query(f"max({m.PASS_NODES.name})"),
            thresholds=limits((None, "blue")),
        ),
        stat(
            "Notices that wait",
            "Messages that wait to be sent.",
            Query(f"max({m.NOTICES_WAITING.name})"),
            thresholds=limits((None, "green"), (100, "yellow")),
            noValue="none",
        ),
        lines(
            "Passes",
            "By their result, each minute. A replica that stands by has one every 5 seconds.",
            Query(f"60 * sum by (result) (rate({m.PASSES.name}[$__rate_interval]))", "{{result}}"),
        ),
        lines(
            "Time of passes",
            "Without those of a standby.",
            *_quantiles(m.PASS_DURATION, "$__rate_interval"),
            unit="s",
        ),
        lines(
            "Notices",
            "Attempts in an hour.",
            Query(f"sum by (transport, result) (increase({m.NOTICES.name}[1h]))", "{{transport}} {{result}}"),
        ),
        lines(
            "Requests",
            "By the API and the status of the answer; none is no answer.",
            Query(
                f"sum by (api, status) (rate({m.API_REQUESTS.name}[$__rate_interval]))", "{{api}} {{status}}"
            ),
            unit="reqps",
        ),
        lines(
            "Time of requests",
            "Nine of ten are faster.",
            Query(_quantile(0.9, m.API_REQUEST_DURATION, "$__rate_interval", "api"), "{{api}}"),
            unit="s",
        ),
    )


def _quantiles(family: Family, time: str) -> tuple[Query, ...]:
    return (
        Query(_quantile(0.5, family, time), "half of them are faster"),
        Query(_quantile(0.9, family, time), "nine of ten are faster"),
    )


def _quantile(share: float, family: Family, time: str, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({share}, sum by ({by}) (rate({family.name}_bucket[{time}])))"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(as_text(), encoding="utf-8")
