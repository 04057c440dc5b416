"""The hooks of the settings, as the service behind a webhook answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.model.hooks import HookAnswer, HookKey, HookRun, HookState
from reconciler.simulation.api import SimulatedApi

TAKES = timedelta(minutes=2)
"""How long a run takes if nothing is wrong."""

_AGAIN = timedelta(minutes=1)
_SAYS = {
    "failed": HookAnswer(HookState.FAILED, "500 Internal Server Error", _AGAIN),
    "silent": HookAnswer(HookState.UNKNOWN, "no answer", _AGAIN),
    "busy": HookAnswer(HookState.RUNNING, "503 Service Unavailable", _AGAIN),
}
ANSWERS = ("", *_SAYS)
"""What the service can do: `""` is done after a while."""


@dataclass(slots=True)
class HookService:
    """A HookRunner. `answer` is one of ANSWERS; `begun` are the runs, with the time of each (UTC)."""

    api: SimulatedApi
    answer: str = ""
    begun: dict[HookKey, datetime] = field(default_factory=dict)

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """Return what each of these runs does now."""
        return {key: self._answer(key) for key in keys}

    def _answer(self, key: HookKey) -> HookAnswer:
        began = self.begun.get(key)
        if began is None:
            return HookAnswer(HookState.ABSENT)
        if self.answer:
            return _SAYS[self.answer]
        over = self.api.cluster.clock.now() - began >= TAKES
        return HookAnswer(HookState.DONE) if over else HookAnswer(HookState.RUNNING, "it runs", _AGAIN)

    def run(self, run: HookRun) -> None:
        """Begin a run; one that has begun goes on."""
        call = self.api.begin_write("run_hook", run.key.node, str(run.key.id), run)
        self.begun.setdefault(run.key, self.api.cluster.clock.now())
        self.api.end_write(call)
