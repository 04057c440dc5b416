"""The dashboard for Grafana: `python -m website.dashboard FILE`, or `nox -s docs`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from reconciler import plugins
from reconciler.model.case_outcome import ENDS, InTime
from reconciler.model.values import replace

m: Any = next(plugins.modules("catalogue"))
"""The families of metrics of the feature that has them."""

Json = dict[str, Any]

Query = str | tuple[str, str]
"""An expression, with the name of each series: `{{label}}`, or the heading of the values in a table."""

WIDTH = 24
"""Columns of a dashboard."""

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
"""The Prometheus that the reader chooses."""

DATE = "dateTimeFromNow"
"""The unit of moments in milliseconds, shown as `in 3 hours`."""

# Several replicas run, and one of them acts: each expression is about all of them.
_NODE = '{node=~"$node"}'

_LAST = {"reduceOptions": {"calcs": ["lastNotNull"]}}


class Panel(Struct, frozen=True):
    """A panel without its place: the title, the sentence behind the `i`, the queries, and how they look."""

    title: str
    text: str
    kind: str
    queries: tuple[Query, ...]
    width: int
    height: int
    unit: str
    field: Mapping[str, Any]
    options: Mapping[str, Any]
    more: Mapping[str, Any] = {}

    def at(self, x: int, y: int) -> Json:
        """Return its JSON at this place."""
        field = dict(self.field)
        overrides = field.pop("overrides", [])
        return {
            "title": self.title,
            "description": self.text,
            "type": self.kind,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(*pair) for pair in enumerate(map(_named, self.queries))],
            "fieldConfig": {"defaults": {"unit": self.unit, **field}, "overrides": overrides},
            "options": dict(self.options),
            **self.more,
        }

    def _target(self, index: int, query: tuple[str, str]) -> Json:
        about = {"datasource": SOURCE, "expr": query[0], "legendFormat": query[1]}
        table = {"format": "table"} if self.kind == "table" else {}
        instant = {} if self.kind == "timeseries" else {"instant": True, "range": False}
        return {"refId": chr(ord("A") + index), **about, **table, **instant}


def _named(query: Query) -> tuple[str, str]:
    return (query, "") if isinstance(query, str) else query


def _stat(title: str, text: str, query: Query, unit: str = "short", **field: Any) -> Panel:
    """Return one number, or one word for each value in `field`'s mappings."""
    options = {"colorMode": "background", "graphMode": "none", **_LAST}
    return Panel(title, text, "stat", (query,), 4, 4, unit, field, options)


def _names(title: str, text: str, query: Query) -> Panel:
    """Return the names of series, such as a version."""
    options = {"colorMode": "none", "graphMode": "none", "textMode": "name", **_LAST}
    return Panel(title, text, "stat", (query,), 4, 4, "short", {}, options)


def _lines(title: str, text: str, *queries: Query, unit: str = "short", stacked: bool = False) -> Panel:
    """Return curves over time."""
    custom: Json = {"fillOpacity": 10, "showPoints": "never"}
    if stacked:
        custom |= {"fillOpacity": 60, "stacking": {"mode": "normal", "group": "A"}}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    options = {"tooltip": {"mode": "multi", "sort": "desc"}, "legend": legend}
    return Panel(title, text, "timeseries", queries, 8, 8, unit, {"custom": custom, "min": 0}, options)


def _table(title: str, text: str, *queries: Query, unit: str = "short", dates: Sequence[str] = ()) -> Panel:
    """Return a row for each set of labels, and a column for each query under its name, if it has one.

    `dates` are the columns that have moments.
    """
    values = {f"Value #{chr(ord('A') + index)}": _named(query)[1] for index, query in enumerate(queries)}
    # A table of one query has no letter.
    values |= {"Value": _named(queries[0])[1]} if len(queries) == 1 else {}
    hidden = {"Time": True} | {column: True for column, name in values.items() if not name}
    overrides = [
        {"matcher": {"id": "byName", "options": name}, "properties": [{"id": "unit", "value": DATE}]}
        for name in dates
    ]
    organized = {"excludeByName": hidden, "renameByName": values}
    transformations = [{"id": "merge", "options": {}}, {"id": "organize", "options": organized}]
    field = {"custom": {"filterable": True}, "overrides": overrides}
    more = {"transformations": transformations}
    return Panel(title, text, "table", queries, 12, 9, unit, field, {"showHeader": True}, more)


def _colors(first: str, *steps: tuple[float, str]) -> Json:
    """Return the colors of a number: the first one, and from each value on another."""
    colors = [(None, first), *steps]
    return {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in colors]}


def _words(*values: tuple[str, str, str]) -> list[Json]:
    """Return what is shown for a value: its text and its color."""
    options = {value: {"text": text, "color": color} for value, text, color in values}
    return [{"type": "value", "options": options}]


def _quantile(share: float, family: Any, time: str, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({share}, sum by ({by}) (rate({family}_bucket[{time}])))"


def _quantiles(family: Any, time: str) -> tuple[Query, ...]:
    return (
        (_quantile(0.5, family, time), "half of them are faster"),
        (_quantile(0.9, family, time), "nine of ten are faster"),
    )


def _one_of(*answers: InTime) -> str:
    return "|".join(result for result in ENDS if result.in_time in answers)


_ENDED = f'sum(increase({m.CASES}{{outcome=~"{_one_of(InTime.YES, InTime.NO)}"}}[$__range]))'
_SCORE = f'sum(increase({m.CASES}{{outcome="{_one_of(InTime.YES)}"}}[$__range])) / {_ENDED}'
_BAD = _colors("green", (1, "red"))
_PLAIN = _colors("blue")

ROWS: Mapping[str, Sequence[Panel]] = {
    "Is anything wrong?": (
        _stat(
            "Last successful pass",
            "How long ago. After 10 minutes an alert fires.",
            f"time() - max({m.PASS_LAST_SUCCESS})",
            "s",
            thresholds=_colors("green", (120, "yellow"), (600, "red")),
        ),
        _stat(
            "Lock",
            "Whether one of the replicas holds the lock. In mode Observe none needs it.",
            f"max({m.LOCK_HELD})",
            mappings=_words(("0", "nobody", "orange"), ("1", "held", "green")),
        ),
        _stat(
            "Other reconcilers",
            "Reconcilers with another lock that act on the same nodes.",
            f"count(max by (namespace) ({m.OTHER_RECONCILER}) == 1) or vector(0)",
            thresholds=_BAD,
        ),
        _stat(
            "Settings file",
            "Rejected: it has a mistake, and earlier settings apply.",
            f"min({m.SETTINGS_GOOD})",
            mappings=_words(("0", "rejected", "red"), ("1", "good", "green")),
        ),
        _stat(
            "Nodes that will be missed",
            "Nodes that will not be drained before the platform starts.",
            f"count(max by (node) ({m.WILL_BE_MISSED}) == 1) or vector(0)",
            thresholds=_BAD,
        ),
        _stat(
            "Nodes with a blocked drain",
            "Nodes with pods that can't be evicted now.",
            f"count(max by (node) ({m.BLOCKED_PODS}) > 0) or vector(0)",
            thresholds=_colors("green", (1, "orange")),
        ),
        _stat(
            "Unexpected errors",
            "Errors of the program in the time that is shown. The log has each of them.",
            f"sum(increase({m.UNEXPECTED_ERRORS}[$__range]))",
            thresholds=_BAD,
            decimals=0,
        ),
        _stat(
            "Lost log lines",
            "Lines of the log in the time that is shown that nobody read in time, so that they were dropped.",
            f"sum(increase({m.LOG_LINES_DROPPED}[$__range]))",
            thresholds=_BAD,
            decimals=0,
        ),
    ),
    "What happens next, and what is in the way": (
        _table(
            "Cases",
            "When each drain starts if nothing changes, its last allowed moment, and the platform's time. "
            "Missed is 1 if the node will not be drained in time, at risk if it may not be.",
            (f"1000 * max by (node, kind) ({m.PLANNED_START}{_NODE})", "planned start"),
            (f"1000 * max by (node, kind) ({m.LATEST_START}{_NODE})", "latest start"),
            (f"1000 * max by (node, kind) ({m.PLATFORM_TIME}{_NODE})", "platform may start"),
            (f"max by (node, kind) ({m.WILL_BE_MISSED}{_NODE})", "missed"),
            (f"max by (node, kind) ({m.AT_RISK}{_NODE})", "at risk"),
            dates=("planned start", "latest start", "platform may start"),
        ),
        _table(
            "Unguarded nodes",
            "Nodes with maintenance that the reconciler does not act on, and why.",
            f"max by (node, kind, why) ({m.UNGUARDED}{_NODE})",
        ),
        _table(
            "Missed nodes",
            "Nodes that were not drained in time, for an hour after the end of their case.",
            f"max by (node, kind, outcome) ({m.CASE_MISSED}{_NODE})",
        ),
        _table(
            "Holds",
            "Why nothing happens to a node now, and since when. The docs describe each code.",
            (f"1000 * min by (node, code) ({m.NODE_HOLD_SINCE}{_NODE})", "since"),
            unit=DATE,
        ),
        _table(
            "Blocked pods",
            "Pods that block a drain, by the PodDisruptionBudget. It is empty for other reasons.",
            (f"max by (node, namespace, budget) ({m.BLOCKED_PODS}{_NODE})", "pods"),
        ),
        _table(
            "Nodes with a case or a hold",
            "Their state, pool and zone.",
            f"max by (node, pool, zone, state) ({m.NODE_STATE}{_NODE})",
        ),
    ),
    "The fleet": (
        _lines(
            "Nodes by state", "Managed nodes.", (f"max by (state) ({m.NODES})", "{{state}}"), stacked=True
        ),
        _lines(
            "Nodes by workflow and state",
            "Managed nodes of each workflow.",
            (f"max by (profile, state) ({m.PROFILE_NODES})", "{{profile}} {{state}}"),
            stacked=True,
        ),
        _lines(
            "Places in the budget",
            "How many nodes may be out of service at once, and how many are.",
            (f"max({m.BUDGET_PLACES})", "places"),
            (f"max({m.BUDGET_PLACES_TAKEN})", "taken"),
        ),
        _lines(
            "Holds by code",
            "How many nodes have this reason to wait.",
            (f"count by (code) (max by (node, code) ({m.NODE_HOLD}{_NODE}))", "{{code}}"),
            stacked=True,
        ),
    ),
    "Drains and the score": (
        replace(
            _stat(
                "Drained in time",
                "The score: cases whose node was drained in time, of those that were drained, late or "
                "missed.",
                _SCORE,
                "percentunit",
                thresholds=_colors("red", (0.9, "yellow"), (0.99, "green")),
                noValue="no case",
            ),
            height=8,
        ),
        Panel(
            "Cases that have ended",
            "By what became of them, in the time that is shown.",
            "bargauge",
            ((f"sum by (outcome) (increase({m.CASES}[$__range]))", "{{outcome}}"),),
            4,
            8,
            "short",
            {"decimals": 0, "min": 0},
            {"orientation": "horizontal", **_LAST},
        ),
        _lines(
            "Drains",
            "Drains that run, and those that have ended in an hour.",
            (f"sum({m.DRAINS_RUNNING})", "running"),
            (f"sum by (result) (increase({m.DRAINS}[1h]))", "{{result}}"),
        ),
        _lines(
            "Time of drains",
            "How long drains took that ended with an empty node, over 6 hours.",
            *_quantiles(m.DRAIN_DURATION, "6h"),
            unit="s",
        ),
        _lines(
            "Refused evictions",
            "By the reason, each second.",
            (f"sum by (reason) (rate({m.EVICTIONS_REFUSED}[$__rate_interval]))", "{{reason}}"),
            unit="reqps",
        ),
    ),
    "Sources": (
        _lines(
            "Nodes without a usable answer",
            "By the source. What only this source announces is not seen.",
            (f"max by (source) ({m.SOURCE_UNREADABLE_NODES})", "{{source}}"),
        ),
        _lines(
            "Age of the last answer",
            "The time since a source answered about any node.",
            (f"time() - max by (source) ({m.SOURCE_LAST_ANSWER})", "{{source}}"),
            unit="s",
        ),
        _lines(
            "Answers",
            "One for each node and pass.",
            (
                f"sum by (source, result) (rate({m.SOURCE_ANSWERS}[$__rate_interval]))",
                "{{source}} {{result}}",
            ),
            unit="cps",
        ),
    ),
    "The reconciler": (
        _names(
            "Version",
            "Of the program.",
            (f"max by (version, python) ({m.BUILD_INFO})", "{{version}}, Python {{python}}"),
        ),
        _names(
            "Settings in force",
            "The mode, and the first digits of the hash of the file.",
            (f"max by (mode, hash) ({m.SETTINGS_INFO})", "{{mode}} {{hash}}"),
        ),
        _stat(
            "Settings loaded",
            "When the settings in force were loaded.",
            f"1000 * max({m.SETTINGS_LOADED})",
            DATE,
            thresholds=_PLAIN,
        ),
        _stat("Managed nodes", "In the last pass.", f"max({m.PASS_NODES})", thresholds=_PLAIN),
        _stat(
            "Notices that wait",
            "Messages that wait to be sent.",
            f"max({m.NOTICES_WAITING})",
            thresholds=_colors("green", (100, "yellow")),
            noValue="none",
        ),
        _lines(
            "Passes",
            "By their result, each minute. A replica that stands by has one every 5 seconds.",
            (f"60 * sum by (result) (rate({m.PASSES}[$__rate_interval]))", "{{result}}"),
        ),
        _lines(
            "Time of passes",
            "Without those of a standby.",
            *_quantiles(m.PASS_DURATION, "$__rate_interval"),
            unit="s",
        ),
        _lines(
            "Notices",
            "Attempts in an hour.",
            (f"sum by (transport, result) (increase({m.NOTICES}[1h]))", "{{transport}} {{result}}"),
        ),
        _lines(
            "Requests",
            "By the API and the status of the answer; none is no answer.",
            (f"sum by (api, status) (rate({m.API_REQUESTS}[$__rate_interval]))", "{{api}} {{status}}"),
            unit="reqps",
        ),
        _lines(
            "Time of requests",
            "Nine of ten are faster.",
            (_quantile(0.9, m.API_REQUEST_DURATION, "$__rate_interval", "api"), "{{api}}"),
            unit="s",
        ),
    ),
}
"""The panels from left to right, by the title of their row."""

_SHOWN_NODE = {
    "name": "node",
    "label": "Node",
    "type": "query",
    "datasource": SOURCE,
    "query": {"query": f"label_values({m.NODE_STATE}, node)", "refId": "node"},
    "refresh": 2,
    "sort": 1,
    "multi": True,
    "includeAll": True,
    # Also nodes without a case, which are in no list.
    "allValue": ".*",
    "current": {"text": ["All"], "value": ["$__all"]},
}


def dashboard() -> Json:
    """Return the dashboard as Grafana imports it."""
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
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
        "templating": {"list": [source, _SHOWN_NODE]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(_placed(), 1)],
    }


def _placed() -> Iterator[Json]:
    """Yield all panels, below the title of their row."""
    y = 0
    for title, panels in ROWS.items():
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        yield {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place}
        y += 1
        x = height = 0
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            yield panel.at(x, y)
            x, height = x + panel.width, max(height, panel.height)
        y += height


def as_text() -> str:
    """Return the file."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(as_text(), encoding="utf-8")
