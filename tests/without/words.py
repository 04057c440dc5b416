"""The words of each plugin: what the core may not say once the plugin is deleted.

`WORDS` has the words of the field that a plugin brings, the keys of the settings that are nothing without it,
and its pages. A word that the core needs for something of its own is no word of a plugin: a *plan* is what a
pass makes, and an *event* is what the platform announces. A new plugin needs its line here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PLUGINS = ("features", "sources")
"""The folders of `reconciler` that have the plugins."""


class Words(NamedTuple):
    """What belongs to a plugin.

    `words` are regular expressions, tried anywhere in a line without regard to case. `keys` are keys of the
    settings with all that is below them, from the top, with dots. `pages` are those in `docs` that have
    another name than the plugin.
    """

    words: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()

    def are_in(self, line: str) -> bool:
        """Whether a line has one of the words."""
        return bool(self.words) and re.search("|".join(self.words), line, re.IGNORECASE) is not None


WORDS: dict[str, Words] = {
    "features/machines": Words(
        (r"surge", r"machine.?pool", r"scale.?up", r"machine.?provider"),
        ("replace",),
        pages=("replacing.md",),
    ),
    "features/workflows": Words((r"workflow", r"hypervisor", r"go.?template"), ("profiles",)),
    "features/publishing": Words(
        (r"publish(?!ed events|es? events)", r"drainsafe"), ("publish", "hints", "history")
    ),
    "features/approvals": Words((r"approv",)),
    "features/calendars": Words((r"icalendar", r"\bics\b", r"calendar.?file"), ("calendars",)),
    "features/events": Words((r"pod.?events",), ("drain.podEvents",)),
    "features/history": Words((r"\bhistory\b",)),
    "features/hooks": Words((r"(?<!web)hook(?!s?\.example)",), ("hooks",)),
    "features/metrics": Words((r"prometheus", r"openmetrics", r"otlp")),
    "features/notices": Words(
        (r"notif", r"slack", r"teams\b", r"pagerduty", r"alertmanager"),
        ("notify",),
        pages=("runbooks/NodeMaintenanceNoticesNotDelivered.md",),
    ),
    "features/page": Words((r"html", r"\bthe page\b")),
    "features/planning": Words(),
    "features/readiness": Words((r"(?<!network.)readiness(?!.?probe|.?gate)",)),
    "features/recordings": Words((r"recording", r"replay"), pages=("recording.md",)),
    "features/simulate": Words((r"simulate\b", r"scenario")),
    "features/tracing": Words((r"tracing", r"opentelemetry", r"\botel")),
    "features/esx": Words((r"\besx", r"vcenter", r"vmware"), ("esx", "sources.esx")),
    "features/kubernikus": Words((r"kubernikus",), ("kubernikus", "sources.kubernikus")),
    "sources/condition": Words((r"VMEventScheduled",), ("sources.nodeConditions",)),
    "sources/imds": Words((r"imds", r"acknowledg"), ("sources.imds",), pages=("agent.md",)),
    "sources/request": Words((), ("sources.requests",)),
    "sources/named_condition": Words((r"named.?condition",), ("conditions", "overrides.conditions")),
    "sources/arm": Words((r"\barm\b", r"self.?service"), ("sources.arm",)),
    "sources/aws": Words((r"\baws\b", r"\bec2\b", r"boto"), ("sources.aws",)),
}
"""Words and keys of each plugin, by its room and its name."""


def in_core(root: Path, words: Words) -> Iterator[str]:
    """Yield the files of the core, relative to `root`, that have one of the words."""
    for folder in ("reconciler", "jobs"):
        for path in sorted((root / folder).rglob("*.py")):
            place = path.relative_to(root)
            if is_of_core(place) and any(map(words.are_in, path.read_text(encoding="utf-8").splitlines())):
                yield str(place)


def is_of_core(place: Path) -> bool:
    """Whether a file of the source, relative to the project, stays when all plugins are deleted."""
    return place.parts[1] not in PLUGINS or place.parts[2:] == ("__init__.py",)
