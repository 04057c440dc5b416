"""A history as a value: where it begins, and its steps. It prints as the code that makes it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a history begins.

    `cloud` is azure or aws. `provider` is what owns the machines of the nodes, empty for nothing. `settings`
    are the lines of the settings file. `pods` are the pods besides a Deployment with one pod per node.
    """

    nodes: int = 3
    cloud: str = "azure"
    provider: str = ""
    settings: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, and the minutes that pass after it.

    `what` is the name of a move, `on` the position of its node among all nodes by name, `value` one of the
    move's values.
    """

    what: str
    on: int = 0
    value: str = ""
    then: int = 0

    def __repr__(self) -> str:
        """Return the call without what has its default value."""
        words = [repr(self.what)]
        words += [f"on={self.on}"] if self.on else []
        words += [f"value={self.value!r}"] if self.value else []
        words += [f"then={self.then}"] if self.then else []
        return f"Step({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class History:
    """A scene and its steps; `seed` decides which messages of watches are lost, doubled or late."""

    scene: Scene
    steps: tuple[Step, ...]
    seed: int = 0

    def with_steps(self, steps: tuple[Step, ...]) -> History:
        """Return the history with other steps."""
        return replace(self, steps=steps)
