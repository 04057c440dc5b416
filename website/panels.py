"""Panels of Grafana as JSON: what the dashboard is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

Json = dict[str, Any]

WIDTH = 24
"""Columns of a dashboard."""

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
"""The Prometheus that the reader chooses."""

DATE = "dateTimeFromNow"
"""The unit of moments in milliseconds, shown as `in 3 hours`."""


class Query(Struct, frozen=True):
    """An expression, with the name of each series: `{{label}}`, or the heading of the values in a table."""

    expression: str
    name: str = ""


class Panel(Struct, frozen=True):
    """A panel without its place: the title, the sentence behind the `i`, the queries, and how they look."""

    title: str
    text: str
    kind: str
    queries: tuple[Query, ...]
    width: int
    height: int
    unit: str = "short"
    field: Mapping[str, Any] | None = None
    options: Mapping[str, Any] | None = None
    more: Mapping[str, Any] | None = None

    def at(self, number: int, x: int, y: int) -> Json:
        """Return its JSON, with this id, at this place."""
        table = self.kind == "table"
        targets = [
            {
                "refId": chr(ord("A") + index),
                "datasource": SOURCE,
                "expr": query.expression,
                "legendFormat": query.name,
                **({"format": "table"} if table else {}),
                **({} if self.kind == "timeseries" else {"instant": True, "range": False}),
            }
            for index, query in enumerate(self.queries)
        ]
        field = dict(self.field or {})
        overrides = field.pop("overrides", [])
        return {
            "id": number,
            "title": self.title,
            "description": self.text,
            "type": self.kind,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": targets,
            "fieldConfig": {"defaults": {"unit": self.unit, **field}, "overrides": overrides},
            "options": dict(self.options or {}),
            **(self.more or {}),
        }


def stat(title: str, text: str, query: Query, unit: str = "short", **field: Any) -> Panel:
    """Return one number, or one word for each value in `field`'s mappings."""
    options = {"colorMode": "background", "graphMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return Panel(title, text, "stat", (query,), 4, 4, unit, field=field, options=options)


def names(title: str, text: str, query: Query) -> Panel:
    """Return the names of series, such as a version."""
    options = {
        "colorMode": "none",
        "graphMode": "none",
        "textMode": "name",
        "reduceOptions": {"calcs": ["lastNotNull"]},
    }
    return Panel(title, text, "stat", (query,), 4, 4, options=options)


def lines(title: str, text: str, *queries: Query, unit: str = "short", stacked: bool = False) -> Panel:
    """Return curves over time."""
    custom: Json = {"fillOpacity": 10, "showPoints": "never"}
    if stacked:
        custom |= {"fillOpacity": 60, "stacking": {"mode": "normal", "group": "A"}}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    options = {"tooltip": {"mode": "multi", "sort": "desc"}, "legend": legend}
    return Panel(
        title, text, "timeseries", queries, 8, 8, unit, field={"custom": custom, "min": 0}, options=options
    )


def table(
    title: str, text: str, *queries: Query, unit: str = "short", units: Mapping[str, str] | None = None
) -> Panel:
    """Return a row for each set of labels, and a column for each query under its name, if it has one.

    `units` are those of columns with another unit than `unit`.
    """
    values = {f"Value #{chr(ord('A') + index)}": query.name for index, query in enumerate(queries)}
    # A table of one query has no letter.
    values |= {"Value": queries[0].name} if len(queries) == 1 else {}
    hidden = {"Time": True} | {column: True for column, name in values.items() if not name}
    overrides = [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "unit", "value": other}],
        }
        for name, other in (units or {}).items()
    ]
    transformations = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "renameByName": values}},
    ]
    return Panel(
        title,
        text,
        "table",
        queries,
        12,
        9,
        unit,
        field={"custom": {"filterable": True}, "overrides": overrides},
        options={"showHeader": True},
        more={"transformations": transformations},
    )


def limits(*steps: tuple[float | None, str]) -> Json:
    """Return the colors of a number: from each value on, the first one without a value."""
    return {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in steps]}


def words(*values: tuple[str, str, str]) -> list[Json]:
    """Return what is shown for a value: its text and its color."""
    shown = {value: {"text": text, "color": color} for value, text, color in values}
    return [{"type": "value", "options": shown}]


def placed(rows: Sequence[tuple[str, Sequence[Panel]]]) -> list[Json]:
    """Return all panels from left to right, below the title of their row."""
    found: list[Json] = []
    y = 0
    for title, panels in rows:
        found.append(
            {
                "id": len(found) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
            }
        )
        y += 1
        x = height = 0
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            found.append(panel.at(len(found) + 1, x, y))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return found
