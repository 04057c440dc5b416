"""What settings and scenes are drawn from, the simplest choice first."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from reconciler.model.errors import SettingsError
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from tests.explore.workflow_texts import CAREFUL, PLAIN

_DETECTOR = "nodeConditions: {staleAfter: 2h"
_ARM = "arm: {enabled: true, every: 1h"
_AWS = "aws: {enabled: true, every: 1h"
_HOOK = "{name: ready, webhook: {url: 'https://hooks.example.com'}}"

SETTINGS: dict[str, tuple[str, ...]] = {
    "mode": ("mode: Enforce", "mode: Finish", "mode: Observe"),
    "nodeSelector": ("nodeSelector: {}", "nodeSelector: {zone: one}"),
    "windows": (
        "windows: []",
        'windows: [{name: night, start: "22:00", end: "05:00"}]',
        'windows: [{name: noon, start: "11:00", end: "14:00"}]',
        'windows: [{name: zone-1, start: "01:00", end: "03:00", nodeSelector: {zone: one}}]',
    ),
    "notAllowed": (
        "notAllowed: []",
        "notAllowed: [{name: sale, start: 2026-11-21T13:00, end: 2026-11-22, reason: sale}]",
        "notAllowed: [{name: sale, start: 2026-11-21, end: 2026-11-22T06:00, absolute: true}]",
    ),
    "budget": (
        "budget: {maxUnavailable: 1}",
        "budget: {maxUnavailable: 100%}",
        "budget: {maxUnavailable: 50%}",
        "budget: {maxUnavailable: 2, perZone: 1}",
        "budget: {maxUnavailable: 100%, perPool: 1, exempt: []}",
        "budget: {maxUnavailable: 2, spacing: 10m}",
        "budget: {maxUnavailable: 0}",
    ),
    "events": (
        "events: {}",
        "events: {Freeze: {drain: true}, LiveMigration: {drain: true, outsideWindow: AtDeadline}}",
        "events: {Reboot: {outsideWindow: Never}, userInitiated: Drain}",
        "events: {Redeploy: {outsideWindow: Immediately}, Unknown: {drain: true}}",
        "events: {Reboot: {acknowledge: true}, Redeploy: {acknowledge: true}}",
        "events: {Reboot: {replace: true}, Redeploy: {replace: true}, Terminate: {replace: true}}",
        "events: {Reboot: {minDuration: 1m, leadTime: 4h}, Rebalance: {drain: true}}",
        "events: {Reboot: {approval: true}, Redeploy: {approval: true}, Terminate: {approval: true}}",
        "events: {Reboot: {approval: true, approvalMissing: Proceed}, Redeploy: {approval: true}}",
    ),
    "conditions": (
        "conditions: {}",
        "conditions: {KernelDeadlock: {}}",
        "conditions: {KernelDeadlock: {for: 5m, replace: true}}",
        "conditions: {KernelDeadlock: {approval: true}}",
    ),
    "drain": (
        "drain: {}",
        "drain: {maxConcurrentNodes: 1}",
        "drain: {timeout: 5m}",
        "drain: {podsMayWait: 5m, webhooksMayDeny: 1m}",
        "drain: {podsMayWait: 0s, webhooksMayDeny: 0s, groupsTogether: 12h}",
    ),
    "uncordon": ("uncordon: {}", "uncordon: {settle: 0s}", "uncordon: {settle: 10m}"),
    "publish": (
        "publish: []",
        "publish: [drainsafe]",
        "publish: [nodemaintenances, node-conditions]",
        "publish: [drainsafe, node-conditions, nodemaintenances]",
    ),
    "calendars": (
        "calendars: []",
        "calendars: [{name: freeze, file: /freeze.yaml}]",
        "calendars: [{name: freeze, file: /freeze.yaml, absolute: true, nodeSelector: {zone: one}}]",
        "calendars: [{name: nights, file: /nights.yaml, as: windows}]",
    ),
    "hooks": (
        "hooks: {}",
        f"hooks: {{preDrain: [{_HOOK}]}}",
        f"hooks: {{timeout: 3m, postDrain: [{_HOOK}], preUncordon: [{_HOOK}]}}",
        "hooks: {timeout: 1h}",
        "hooks: {timeout: 0s}",
    ),
    "profiles": ("profiles: {}", PLAIN, CAREFUL),
    "hints": ("hints: {}", "hints: {taint: true, label: true}"),
    "adopt": ("adopt: []", "adopt: [mechanic]"),
    "coexist": ("coexist: {}", "coexist: {aksRemediator: Leave}"),
    "replace": ("replace: {}", "replace: {surge: true}"),
    # Most heartbeats and answers are good for long: each that expires costs a pass.
    "sources": (
        f"sources: {{{_ARM}}}, {_AWS}}}, {_DETECTOR}}}}}",
        f"sources: {{{_DETECTOR}}}}}",
        f"sources: {{{_ARM}, selfService: true}}, {_AWS}}}, {_DETECTOR}}}}}",
        f"sources: {{imds: {{enabled: false}}, {_ARM}}}, {_DETECTOR}}}}}",
        f"sources: {{nodeConditions: {{enabled: false}}, {_AWS}}}}}",
        f"sources: {{requests: {{enabled: false}}, {_ARM}, ahead: 4d}}, {_DETECTOR}}}}}",
        "sources: {arm: {enabled: true}, aws: {enabled: true}}",
    ),
}
"""The lines of a settings file, by their key."""

LINES = tuple(line for lines in SETTINGS.values() for line in lines)

NODES = (1, 2, 3, 4, 5)
CLOUDS = ("azure", "azure", "azure", "aws")
PROVIDERS = ("", "", "", "openshift", "aks", "karpenter")
PODS = ("scratch", "bare", "budget", "slow", "tenant", "group")
"""Pods besides the Deployment: with an emptyDir, without a controller, under a tight budget, slow to end,
those of a tenant who wants to stop drains, and those of a JobSet."""

WAITS = (0, 0, 0, 1, 1, 2, 5, 10, 15, 20, 30, 60, 120, 240, 600, 600, 1440)
"""Minutes."""


@lru_cache(maxsize=4096)
def parsed(lines: tuple[str, ...]) -> Settings:
    """Return the settings of a file with these lines."""
    return parse_settings("\n".join(lines), "explore.yaml")


def is_good(lines: tuple[str, ...]) -> bool:
    """Return whether a file with these lines has no mistake."""
    try:
        parsed(lines)
    except SettingsError:
        return False
    return True


def changed(lines: Iterable[str], line: str) -> tuple[str, ...]:
    """Return the lines with this one in place of that with its key."""
    key = line.partition(":")[0]
    return tuple(sorted((*(one for one in lines if one.partition(":")[0] != key), line)))
