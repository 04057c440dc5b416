"""What histories are drawn from, the simplest choice first, and how a seed draws one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from random import Random

from reconciler.model.errors import SettingsError
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from tests.explore.history import MOVES, History, Scene, Step


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


_CHECKS = (
    '{type: hasLabel, name: one, config: {key: one, value: "true"}}',
    '{type: hasLabel, name: two, config: {key: two, value: "true"}}',
    "{type: maxMaintenance, name: few, config: {max: 1}}",
    "{type: wait, name: rest, config: {duration: 5m}}",
    "{type: stagger, name: turn, config: {duration: 20m, leaseName: turns, leaseNamespace: shop}}",
    "{type: scheduledEvent, name: event}",
    "{type: window, name: open}",
    "{type: budget, name: place}",
    "{type: approved, name: approved}",
    "{type: hooksDone, name: ready}",
    "{type: affinity, name: others, config: {minOperational: 1}}",
    "{type: clusterHealthy, name: healthy, config: {maxNotReady: 1}}",
)
_TRIGGERS = (
    "{type: drain, name: drain, config: {evictionTimeout: 10m}}",
    "{type: cordon, name: cordon}",
    "{type: uncordon, name: uncordon}",
    '{type: alterLabel, name: mark, config: {key: maintained, value: "true"}}',
    "{type: taint, name: repel, config: {key: example.com/works, effect: PreferNoSchedule}}",
    "{type: taint, name: attract, config: {key: example.com/works, effect: PreferNoSchedule, remove: true}}",
)


def _file(first: str, second: str) -> str:
    """Return the line of a file with these two profiles."""
    instances = f"{{check: [{', '.join(_CHECKS)}], trigger: [{', '.join(_TRIGGERS)}]}}"
    return f"profiles: {{instances: {instances}, profiles: [{first}, {second}]}}"


PLAIN = _file(
    "{name: first,"
    " operational: {transitions: [{check: one, trigger: cordon, next: maintenance-required}]},"
    " maintenance-required: {transitions: [{check: one && few, next: in-maintenance},"
    ' {check: "!one", trigger: uncordon, next: operational}]},'
    ' in-maintenance: {enter: drain, transitions: [{check: "!one", trigger: uncordon, next: operational}]}}',
    "{name: second,"
    " operational: {transitions: [{check: two, trigger: drain, next: in-maintenance}]},"
    ' in-maintenance: {enter: cordon, transitions: [{check: "!two", trigger: uncordon, next: operational}]}}',
)
"""Workflows that wait for labels only."""

CAREFUL = _file(
    "{name: first,"
    " operational: {transitions: [{check: one && healthy && !event, next: maintenance-required}]},"
    " maintenance-required: {transitions:"
    " [{check: one && turn && open && place && others, trigger: mark, next: in-maintenance},"
    ' {check: "!one", next: operational}]},'
    " in-maintenance: {enter: repel && drain && attract,"
    ' transitions: [{check: "!one && ready && rest", trigger: uncordon, next: operational}]}}',
    "{name: second,"
    " operational: {transitions: [{check: two, next: maintenance-required}]},"
    " maintenance-required: {transitions: [{check: two && approved, trigger: drain, next: in-maintenance},"
    ' {check: "!two", next: operational}]},'
    " in-maintenance:"
    ' {transitions: [{check: "!two && rest", trigger: uncordon, next: operational}]}}',
)
"""Workflows that ask for what the program knows of nodes, events and people."""


_DETECTOR = "nodeConditions: {staleAfter: 2h"
_ARM = "arm: {enabled: true, every: 1h"
_AWS = "aws: {enabled: true, every: 1h"
_HOOK = "{name: ready, webhook: {url: 'https://hooks.example.com'}}"
_APPROVAL = "events: {Reboot: {approval: true}, Redeploy: {approval: true}, Terminate: {approval: true}}"

_LINES: dict[str, tuple[str, ...]] = {
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
        _APPROVAL,
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

SETTINGS = {
    key: there
    for key, lines in _LINES.items()
    if (there := tuple(line for line in lines if is_good((line,))))
}
"""The lines of a settings file, by their key. A line about a plugin that is not installed is no choice."""

LINES = tuple(line for lines in SETTINGS.values() for line in lines)

NODES = (1, 2, 3, 4, 5)
CLOUDS = ("azure", "azure", "azure", "aws")
PROVIDERS = ("", "", "", "openshift", "aks", "karpenter")
PODS = ("scratch", "bare", "budget", "slow", "tenant", "group")
"""Pods besides the Deployment: with an emptyDir, without a controller, under a tight budget, slow to end,
those of a tenant who wants to stop drains, and those of a JobSet."""

WAITS = (0, 0, 0, 1, 1, 2, 5, 10, 15, 20, 30, 60, 120, 240, 600, 600, 1440)
"""Minutes."""


def changed(lines: Iterable[str], line: str) -> tuple[str, ...]:
    """Return the lines with this one in place of that with its key."""
    key = line.partition(":")[0]
    return tuple(sorted((*(one for one in lines if one.partition(":")[0] != key), line)))


_FEWEST, _MOST = 4, 30
_ACTS = 0.8
"""How many histories begin with a process that acts, which most of what can go wrong needs."""

_CHANGED = 0.35
"""How many of the settings differ from their simplest choice."""

_SOON = ("15", "5", "60", "0")
_BY_AGENT = tuple(f"{kind} in {date} by agent" for date in _SOON for kind in ("Reboot", "Redeploy"))
_BY_DETECTOR = tuple(one.replace("agent", "condition") for one in _BY_AGENT)
_BY_BOTH = tuple(one.replace("agent", "both") for one in _BY_AGENT)
_BLIND_AGENT = ("agent", ("not ready", "unknown"))
_HOOKS = ("pre-drain.leader", "post-drain.leader", "pre-uncordon.leader")
_ASKS = ("wait-completed", "do-not-disrupt", "on-completion")
_CLOUD_AWAY = ("cloud", ("403 AuthorizationFailed", "503"))

STORIES: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = (
    (("vm event", _BY_AGENT), _BLIND_AGENT, ("cancel", ("",))),
    (("vm event", _BY_DETECTOR), ("condition unknown", ("",))),
    (("vm event", _BY_DETECTOR), ("detector", ("silent",)), ("cancel", ("",))),
    (("vm event", _BY_BOTH), ("cancel", ("",)), ("vm event", _BY_BOTH)),
    (("vm event", _BY_AGENT), ("request", ("Reboot", "Redeploy")), ("withdraw", ("",))),
    (("request", ("Reboot", "Redeploy", "Terminate")), ("request", ("nonsense",)), ("withdraw", ("",))),
    (("request", ("Reboot id CHG-1",)), ("request", ("Reboot id CHG-2", "Freeze")), ("withdraw", ("",))),
    (("arm plan", ("in 60", "in 20160")), ("request", ("Redeploy",)), ("withdraw", ("",))),
    (("ec2 event", ("instance-reboot in 60", "instance-stop in 60")), _CLOUD_AWAY, ("cloud", ("",))),
    (("settings", ("budget: {maxUnavailable: 0}",)), ("vm event", _BY_BOTH)),
    (("pod budget", ("0",)), ("vm event", _BY_BOTH)),
    (("watches", ("lost", "mixed")), ("request", ("Reboot", "Redeploy"))),
    (("tenant", ("budget",)), ("vm event", _BY_BOTH)),
    (("hold", ("", "now", "for 30")), ("vm event", _BY_BOTH), ("resume", ("",))),
    (("vm event", _BY_BOTH), ("hold", ("now", "now for 30")), ("resume", ("",))),
    (("hook", _HOOKS), ("request", ("Reboot", "Redeploy")), ("hook done", _HOOKS)),
    (("request", ("Reboot", "Redeploy")), ("hook", _HOOKS), ("withdraw", ("",))),
    (("pod hook", ("pre-drain.leader",)), ("pod waits", _ASKS), ("request", ("Reboot", "Redeploy"))),
    (("settings", (_APPROVAL,)), ("request", ("Reboot",)), ("approve", ("", "recorded"))),
    (("settings", (PLAIN, CAREFUL)), ("workflow label", ("first--second",)), ("work", ("one", "two"))),
    (("work", ("one",)), ("work", ("two",)), ("work done", ("one",)), ("work done", ("two",))),
    (("work", ("one", "two")), ("vm event", _BY_BOTH), ("work done", ("one", "two"))),
    (("kernel deadlock", ("True",)), ("kernel deadlock", ("Unknown", "False"))),
)
"""Moves on one node that follow each other: what makes a case, and what may make it end too early."""

_TOLD = 0.3
"""How often a step is one of these stories."""


def _story(random: Random, nodes: int) -> Iterator[Step]:
    on = random.randrange(nodes)
    # A move of a plugin that is not installed does not exist.
    stories = [story for story in STORIES if all(what in MOVES for what, _ in story)]
    for what, values in random.choice(stories):
        yield Step(what, on, random.choice(values), random.choice(WAITS))


def _settings(random: Random) -> tuple[str, ...]:
    lines: tuple[str, ...] = ()
    for choices in SETTINGS.values():
        some = choices if random.random() < _CHANGED else choices[:1]
        lines = changed(lines, random.choice(some))
    if random.random() < _ACTS:
        lines = changed(lines, "mode: Enforce")
    return lines


def draw(seed: int) -> History:
    """Return the history of a seed: always the same one."""
    random = Random(f"history {seed}")
    lines = _settings(random)
    while not is_good(lines):
        lines = _settings(random)
    scene = Scene(
        random.choice(NODES),
        random.choice(CLOUDS),
        random.choice(PROVIDERS),
        lines,
        tuple(one for one in PODS if random.random() < 0.25),
    )
    moves = list(MOVES.values())
    weights = [one.weight for one in moves]
    steps: list[Step] = []
    for _ in range(random.randint(_FEWEST, _MOST)):
        if random.random() < _TOLD:
            steps += _story(random, scene.nodes)
            continue
        one = random.choices(moves, weights)[0]
        # A few nodes of many steps make more cases than many nodes of few.
        on = min(random.randrange(scene.nodes), random.randrange(scene.nodes)) if one.on_node else 0
        steps.append(Step(one.name, on, random.choice(one.values), random.choice(WAITS)))
    return History(scene, tuple(steps), seed)
