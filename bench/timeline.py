"""When a drain asked for evictions, and when the budgets allowed one: what a drain waits for."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.bare import Changed, PlainWatch
from tests.support.controlplane.api import Api
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.server import ControlPlane

News = tuple[datetime, str]
"""When a budget was seen to allow a disruption (UTC), and its name."""


class BudgetNews:
    """Writes down each report of a budget that allows a disruption, while a row runs."""

    def __init__(self, plane: ControlPlane) -> None:
        self._news: list[News] = []
        self._over = threading.Event()
        self._api = Api(plane.kubeconfig, user_agent="bench-news")
        self._watch = PlainWatch(self._api, "apis/policy/v1/poddisruptionbudgets", self._see, self._over)

    def stop(self) -> list[News]:
        """End it and return what was seen."""
        self._over.set()
        self._watch.close()
        self._api.close()
        return self._news

    def _see(self, event: Changed) -> None:
        if int(event["object"].get("status", {}).get("disruptionsAllowed", 0)) > 0:
            self._news.append((datetime.now(UTC), event["object"]["metadata"]["name"]))


@dataclass(frozen=True, slots=True)
class Timeline:
    """One drain that began at `since`: the requests for evictions, and the news of budgets."""

    since: datetime
    evictions: list[AuditEntry]
    news: list[News]

    def tenths_of_evictions(self) -> Counter[int]:
        """Return how many evictions were asked for in each tenth of a second."""
        return Counter(self._tenth(entry.timestamp) for entry in self.evictions)

    def tenths_of_news(self) -> Counter[int]:
        """Return how many budgets were seen to allow one in each tenth of a second."""
        return Counter(self._tenth(at) for at, _ in self.news)

    def reactions(self) -> list[float]:
        """Return the seconds from the news of a budget to the next eviction of one of its pods."""
        found = []
        for entry in self.evictions:
            # The pods of a Deployment have its name before their own.
            app = entry.name.split("-")[0]
            # The audit log has the moment at which the server got the request.
            before = [at for at, budget in self.news if budget == app and at <= entry.timestamp]
            if before:
                found.append((entry.timestamp - max(*before, self.since)).total_seconds())
        return sorted(found)

    def _tenth(self, at: datetime) -> int:
        return max(0, int((at - self.since).total_seconds() * 10))


def as_table(timelines: Mapping[str, Timeline]) -> str:
    """Return one round: for each row and tenth of a second, the evictions and the news of budgets."""
    columns = []
    for timeline in timelines.values():
        columns += [timeline.tenths_of_evictions(), timeline.tenths_of_news()]
    heads = [head for name in timelines for head in (f"{name}: evictions", "news")]
    lines = [_row(["s", *heads]), _row(["---"] * (len(heads) + 1))]
    last = max((max(column, default=0) for column in columns), default=0)
    lines += [
        _row([f"{tenth / 10:.1f}", *(str(column[tenth] or "") for column in columns)])
        for tenth in range(last + 1)
    ]
    for name, timeline in timelines.items():
        reactions = timeline.reactions()
        if reactions:
            middle, late = reactions[len(reactions) // 2], reactions[len(reactions) * 9 // 10]
            lines.append(f"{name}: from news to the eviction {middle:.3f} s (median), {late:.3f} s (90 %)")
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
