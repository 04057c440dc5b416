"""Hooks of the settings that a test answers: what was run, and what each hook says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.errors import ClusterError
from reconciler.model.hooks import HookAnswer, HookKey, HookRun, HookState


class FakeHooks:
    """HookRunner that notes each order. A hook that was run goes on until `says` has another answer.

    `asked` are the names of the hooks that the last pass asked for.
    """

    def __init__(self) -> None:
        self.begun: list[HookRun] = []
        self.asked: list[str] = []
        self.says: dict[str, HookAnswer] = {}
        self.error: ClusterError | None = None

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """See the port."""
        self.asked = [key.id.name for key in keys]
        begun = {run.key for run in self.begun}
        runs, absent = HookAnswer(HookState.RUNNING, "it runs"), HookAnswer(HookState.ABSENT)
        return {key: self.says.get(key.id.name, runs) if key in begun else absent for key in keys}

    def run(self, run: HookRun) -> None:
        """See the port."""
        if self.error is not None:
            raise self.error
        self.begun.append(run)
