"""Makes a history that breaks a law as small as it can, as long as it breaks the same law."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.explore.choices import SETTINGS, WAITS
from tests.explore.history import History, Step
from tests.explore.moves import MOVES

Fails = Callable[[History], bool]


def shrink(history: History, fails: Fails, most: int = 3000) -> History:
    """Return a smaller history for which `fails` holds, too, after at most so many attempts."""
    tried = 0
    seen: set[History] = {history}
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(history):
            if smaller in seen:
                continue
            seen.add(smaller)
            tried += 1
            if tried > most:
                return history
            if fails(smaller):
                history, progress = smaller, True
                break
    return history


def _smaller(history: History) -> Iterator[History]:
    """Yield simpler histories, the most radical first."""
    steps = history.steps
    size = len(steps)
    chunk = max(1, size // 2)
    while chunk:
        for begin in range(0, size, chunk):
            yield history.with_steps(steps[:begin] + steps[begin + chunk :])
        chunk //= 2
    scene = history.scene
    if scene.pods:
        yield from (
            replace(history, scene=replace(scene, pods=tuple(one for one in scene.pods if one != gone)))
            for gone in scene.pods
        )
    for line in scene.settings:
        simplest = SETTINGS[line.partition(":")[0]][0]
        if line != simplest:
            lines = tuple(simplest if one == line else one for one in scene.settings)
            yield replace(history, scene=replace(scene, settings=lines))
    if scene.provider:
        yield replace(history, scene=replace(scene, provider=""))
    if scene.cloud != "azure":
        yield replace(history, scene=replace(scene, cloud="azure"))
    for nodes in range(1, scene.nodes):
        yield replace(history, scene=replace(scene, nodes=nodes))
    for position, step in enumerate(steps):
        for simpler in _simpler(step):
            yield history.with_steps((*steps[:position], simpler, *steps[position + 1 :]))


def _simpler(step: Step) -> Iterator[Step]:
    shorter = sorted({wait for wait in WAITS if wait < step.then})
    yield from (replace(step, then=wait) for wait in shorter)
    yield from (replace(step, on=on) for on in range(step.on))
    values = MOVES[step.what].values
    before = values[: values.index(step.value)] if step.value in values else ()
    yield from (replace(step, value=value) for value in before[:12])


def without_defaults(history: History) -> History:
    """Return the history without the lines of settings that say what is so anyway."""
    plain = {
        choices[0]
        for key, choices in SETTINGS.items()
        if choices[0].endswith((": {}", ": []")) and key != "sources"
    }
    lines = tuple(one for one in history.scene.settings if one not in plain)
    return replace(history, scene=replace(history.scene, settings=lines))
