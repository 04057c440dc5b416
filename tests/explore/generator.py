"""Draws a history from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.explore.choices import CLOUDS, NODES, PODS, PROVIDERS, SETTINGS, WAITS, changed, is_good
from tests.explore.history import History, Scene, Step
from tests.explore.moves import MOVES
from tests.explore.workflow_texts import CAREFUL, PLAIN

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
_APPROVAL = SETTINGS["events"][-2]
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
    for what, values in random.choice(STORIES):
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
