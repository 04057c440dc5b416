"""Draws a history from a seed."""

from __future__ import annotations

from random import Random

from tests.explore.choices import CLOUDS, NODES, PODS, PROVIDERS, SETTINGS, WAITS, changed, is_good
from tests.explore.history import History, Scene, Step
from tests.explore.moves import MOVES

_FEWEST, _MOST = 4, 30
_ACTS = 0.8
"""How many histories begin with a process that acts, which most of what can go wrong needs."""

_CHANGED = 0.35
"""How many of the settings differ from their simplest choice."""


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
        one = random.choices(moves, weights)[0]
        # A few nodes of many steps make more cases than many nodes of few.
        on = min(random.randrange(scene.nodes), random.randrange(scene.nodes)) if one.on_node else 0
        steps.append(Step(one.name, on, random.choice(one.values), random.choice(WAITS)))
    return History(scene, tuple(steps), seed)
