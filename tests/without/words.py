"""The words of each plugin: what the core may not say once the plugin is deleted.

`WORDS` has the words of the field that a plugin brings, the keys of the settings that are nothing without it,
its pages and its tests. A word that the core needs for something of its own is no word of a plugin: a *plan*
is what a pass makes, and an *event* is what the platform announces. A new plugin needs its line here.
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
    another name than the plugin, and `tests` those of its tests that stand in a room of `tests` with others,
    because they need the same fixtures. A test about two plugins goes with each of them. `manifests` are its
    folders of `k8s`, and its files in those of others; the chart has what is there.
    """

    words: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()

    def are_in(self, line: str) -> bool:
        """Whether a line has one of the words."""
        return bool(self.words) and re.search("|".join(self.words), line, re.IGNORECASE) is not None


WORDS: dict[str, Words] = {
    "features/machines": Words(
        # A Deployment has a maxSurge as well. Machines are a room of the core (docs/design.md): other plugins
        # have some, so the port that scales their pools up and deletes them is none of this plugin.
        (r"(?<!max)surge",),
        ("replace", "events.Reboot.replace"),
        pages=("replacing.md",),
        tests=(
            "real/clouds/test_replacing.py",
            "real/manifests/test_replacing.py",
            "laws/test_spending_follows_a_pools_own_nodes.py",
            "passes/decide/test_closed_nodes.py",
        ),
        manifests=("replacing",),
    ),
    "features/workflows": Words(
        (r"workflow", r"hypervisor", r"go.?template"),
        ("profiles",),
        tests=(
            "features/notices/test_workflow_transports.py",
            "real/clients/test_hypervisors.py",
            "real/manifests/test_checks.py",
            "real/manifests/test_hypervisors.py",
        ),
        manifests=("hypervisors", "shuffles"),
    ),
    "features/publishing": Words(
        # Whatever a feature shows is a publication of the pass, and the node agent publishes as well.
        (r"publisher", r"drainsafe", r"nodemaintenances?\b"),
        ("publish", "hints", "history"),
        tests=("real/clouds/test_nodemaintenances.py", "real/clouds/test_publish.py"),
        manifests=("crd", "publish"),
    ),
    "features/approvals": Words((r"approv",), ("events.Reboot.approval", "events.Reboot.approvalMissing")),
    "features/calendars": Words((r"icalendar", r"\bics\b", r"calendar.?file"), ("calendars",)),
    "features/events": Words(
        # An Event on our own Pod is about the program.
        (r"(?<!own.)pod_?events",),
        ("drain.podEvents",),
        tests=("real/clients/test_kubernetes_events.py", "real/clients/test_pod_events.py"),
    ),
    "features/history": Words(
        (r"\bhistory\b", r"node-maintenance-history", r"audit\.keep\b"),
        ("audit",),
        pages=("audit.md",),
        manifests=("base/kept-history.yaml",),
    ),
    "features/hooks": Words((r"(?<!web)hook(?!s?\.example)",), ("hooks",), manifests=("hooks",)),
    "features/metrics": Words(
        (r"prometheus", r"openmetrics", r"otlp"),
        tests=(
            "monitoring/day.py",
            "monitoring/test_rules.py",
            "real/tools/test_alerts_of_a_day.py",
            "real/tools/test_dashboard.py",
            "real/tools/test_promtool.py",
            "website/test_dashboard.py",
        ),
        manifests=("metrics", "monitoring"),
    ),
    "features/notices": Words(
        # To notify is also what the core does by Events, and what a thread does with those that wait.
        (r"slack", r"teams\b", r"pagerduty", r"alertmanager", r"smtp", r"section `notify`"),
        ("notify",),
        pages=("runbooks/NodeMaintenanceNoticesNotDelivered.md",),
        tests=(
            "laws/test_law_18_owners_read_of_their_own.py",
            "real/manifests/test_checks.py",
            "real/tools/test_alertmanager.py",
        ),
        manifests=("base/kept-notices.yaml", "monitoring/notices-rules.yaml"),
    ),
    "features/page": Words((r"html",)),
    "features/planning": Words(),
    "features/observed": Words(
        (r"node-maintenance-observed", r"--observed", r"observed\.keep"),
        ("observed",),
        pages=("first-weeks.md",),
        manifests=("base/kept-observed.yaml",),
    ),
    "features/pods": Words(
        (r"node-maintenance-pods", r"pods\.(?:keep|publish)\b"), manifests=("base/kept-pods.yaml", "pods")
    ),
    "features/readiness": Words((r"(?<!network.)readiness(?!.?probe|.?gate)",)),
    "features/recordings": Words((r"recording", r"replay"), pages=("recording.md",)),
    "features/revisions": Words(
        (r"revisions\b", r"settings.revision", r"node-maintenance-settings"),
        ("revisions",),
        manifests=("base/kept-settings.yaml",),
    ),
    "features/simulate": Words((r"simulate\b", r"scenario")),
    "features/start": Words(
        (r"reconciler start\b", r"`start NODE"), tests=("real/passes/test_started_by_a_person.py",)
    ),
    "features/tracing": Words((r"tracing", r"opentelemetry", r"\botel")),
    "features/esx": Words(
        (r"\besx", r"vcenter", r"vmware"),
        ("esx", "sources.esx"),
        tests=("real/tools/test_esx_hosts.py", "real/tools/test_vcsim.py", "support/tools/vcsim.py"),
    ),
    "features/kubernikus": Words((r"kubernikus",), ("kubernikus", "sources.kubernikus")),
    "sources/condition": Words((r"VMEventScheduled",), ("sources.nodeConditions",)),
    "sources/imds": Words(
        (r"imds", r"acknowledg"),
        ("sources.imds", "events.Reboot.acknowledge"),
        pages=("agent.md", "runbooks/NodeMaintenanceAgentSilent.md"),
        tests=(
            "bench/agent.py",
            "bench/test_wake.py",
            "bench/wake.py",
            "laws/test_law_12_an_event_is_acknowledged_only_when_all_is_drained.py",
            "real/clouds/test_acknowledging.py",
            "real/tools/test_promtool_agent.py",
        ),
        manifests=("agent", "monitoring/agent-rules.yaml"),
    ),
    "sources/request": Words((), ("sources.requests",)),
    "sources/named_condition": Words((r"named.?condition",), ("conditions", "overrides.conditions")),
    "sources/arm": Words(
        # ARM is an API of Azure, which others ask as well.
        (r"self.?service", r"sources\.arm"),
        ("sources.arm",),
        tests=("real/clouds/test_arm_passes.py", "real/manifests/test_azure.py"),
    ),
    "sources/aws": Words(
        # The cloud, and its command line, have the same name.
        (r"\baws\b(?!\": | CLI|\", )", r"\bec2\b", r"boto"),
        ("sources.aws",),
        tests=("examples/test_machine_maintenance.py",),
    ),
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
