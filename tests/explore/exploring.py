"""Plays many histories, sums up what they came to, makes a broken one small, and prints it as a test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path

from tests.explore import events, faults, hands, outside
from tests.explore.choices import SETTINGS, WAITS, draw, is_good
from tests.explore.history import MOVES, Broken, History, Step
from tests.explore.play import Play

_OF_PLUGINS = sorted(Path(__file__).parents[1].glob("*/*/explored.py"))

FAMILIES = (
    *(events, faults, hands, outside),
    *(import_module(f"tests.{path.parts[-3]}.{path.parts[-2]}.explored") for path in _OF_PLUGINS),
)
"""The modules whose import registers the moves: those of plugins stand beside their tests."""

_DAY = timedelta(days=1)


@dataclass(slots=True)
class Sum:
    """What some histories came to; `broken` are histories that break a law, with what was seen."""

    histories: int = 0
    lasted: timedelta = timedelta()
    passes: int = 0
    writes: int = 0
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[History, str]] = field(default_factory=list)

    @property
    def days(self) -> float:
        """The simulated days, without those after the end of each history."""
        return self.lasted / _DAY

    def add(self, other: Sum) -> None:
        """Add what other histories came to."""
        self.histories += other.histories
        self.lasted += other.lasted
        self.passes += other.passes
        self.writes += other.writes
        self.moves.update(other.moves)
        self.checked.update(other.checked)
        self.broken += other.broken

    def __str__(self) -> str:
        """Return the sums in a few lines."""
        sums = (
            f"{self.days:.0f} simulated days in {self.histories} histories, {self.passes} passes, "
            f"{self.writes} writes"
        )
        laws = sorted(self.checked.items(), key=lambda pair: (not pair[0].isdigit(), pair[0].zfill(3)))
        checked = ", ".join(f"{law}: {count}" for law, count in laws)
        lines = [sums, f"laws checked: {checked}"]
        for family in sorted({family for family, _ in self.moves}):
            kinds: Counter[str] = Counter()
            for (one, what), count in self.moves.items():
                if one == family:
                    kinds[_kind(what)] += count
            words = ", ".join(f"{what} {count}" for what, count in sorted(kinds.items()))
            lines.append(f"{family}: {words}")
        return "\n".join(lines)


def _kind(what: str) -> str:
    """Return a move without dates and long values."""
    words = what.partition(" in ")[0].partition(" at ")[0].partition(" by ")[0]
    return words.partition(":")[0] if len(words) > 40 else words


def play(history: History) -> Sum:
    """Play one history; a law that it breaks is in the sum."""
    made = Play(history)
    found = Sum(1)
    try:
        made.run()
    except Broken as error:
        found.broken.append((history, str(error)))
    except BaseException as error:
        # A fault of the exploration itself; without its seed nobody could repeat it.
        error.add_note(f"history of seed {history.seed}")
        raise
    found.lasted += made.counts.lasted
    found.passes += made.counts.passes
    found.writes += made.counts.writes
    found.moves.update(made.counts.moves)
    found.checked.update(made.laws.checked)
    return found


def broken_law(history: History) -> str:
    """Return the number of the law that a history breaks, empty if it breaks none."""
    if not is_good(history.scene.settings):
        return ""
    try:
        Play(history).run()
    except Broken as error:
        return error.law
    return ""


def explore(seed: int, days: float, *, jobs: int = 1, most_broken: int = 1) -> Iterator[Sum]:
    """Play the histories of the seeds from `seed` on, until they last so many days; yield each result.

    It ends after so many broken ones. With `jobs`, the last seeds of the processes may differ, but each
    history is always the same for its seed.
    """
    lasted, broken, number = timedelta(), 0, seed
    with _players(jobs) as players:
        while lasted < days * _DAY and broken < most_broken:
            batch = range(number, number + (50 * jobs if jobs > 1 else 1))
            number = batch.stop
            if players is None:
                found = [play(draw(one)) for one in batch]
            else:
                waiting = [players.submit(_several, batch[part::jobs]) for part in range(jobs)]
                found = [one.result() for one in as_completed(waiting)]
            for one in found:
                lasted += one.lasted
                broken += len(one.broken)
                yield one


@contextmanager
def _players(jobs: int) -> Iterator[ProcessPoolExecutor | None]:
    if jobs <= 1:
        yield None
        return
    with ProcessPoolExecutor(jobs) as players:
        yield players


def _several(seeds: range) -> Sum:
    found = Sum()
    for seed in seeds:
        found.add(play(draw(seed)))
    return found


def smallest(history: History) -> tuple[History, str]:
    """Return the shrunk history, and what it breaks."""
    law = broken_law(history)
    small = shrink(history, lambda one: broken_law(one) == law)
    plain = without_defaults(small)
    small = plain if broken_law(plain) == law else small
    return small, play(small).broken[0][1]


def as_test(history: History, why: str) -> str:
    """Return a test that plays this history, to be pasted into test_found.py."""
    scene = history.scene
    parts = [f"nodes={scene.nodes}"]
    parts += [f"cloud={scene.cloud!r}"] if scene.cloud != "azure" else []
    parts += [f"provider={scene.provider!r}"] if scene.provider else []
    parts += [f"pods={scene.pods!r}"] if scene.pods else []
    lines = "".join(f"                {line!r},\n" for line in scene.settings)
    steps = "".join(f"            {step!r},\n" for step in history.steps)
    return (
        f"def test_found_{history.seed}() -> None:\n"
        f"    # {why}\n"
        f"    holds(\n"
        f"        Scene(\n            {', '.join(parts)},\n"
        f"            settings=(\n{lines}            ),\n        ),\n"
        f"        (\n{steps}        ),\n"
        f"        seed={history.seed},\n    )\n"
    )


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
