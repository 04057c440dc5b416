"""A whole simulation: clock, cluster, platform, the ports, and the drainer of the process that runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from reconciler.drainer.messages import Limits
from reconciler.model.drains import DrainProgress
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import VirtualClock
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.drains import SteppedDrainer
from reconciler.simulation.log import Log
from reconciler.simulation.platform import SimulatedPlatform


class World:
    """Everything that a pass is handed, and everything that moves around it."""

    def __init__(
        self,
        start: datetime,
        *,
        limits: Limits | None = None,
        prefix: str = DEFAULT_PREFIX,
        on_progress: Callable[[DrainProgress], None] | None = None,
    ) -> None:
        """Take the first moment (aware, UTC)."""
        self.clock = VirtualClock(start)
        self.log = Log()
        self.cluster = SimulatedCluster(self.clock, self.log)
        self.platform = SimulatedPlatform(self.cluster, prefix=prefix)
        self.api = SimulatedApi(self.cluster)
        self._limits = limits
        self._on_progress = on_progress
        self.drainer = self._new_drainer()

    @property
    def now(self) -> datetime:
        """The time, aware, UTC."""
        return self.clock.now()

    def advance(self, pause: timedelta) -> None:
        """Let time pass."""
        self.clock.advance(self.now + pause)

    def restart(self) -> None:
        """Let the process die and another one begin: what was only in its memory is forgotten."""
        self.drainer.kill()
        self.drainer = self._new_drainer()

    def _new_drainer(self) -> SteppedDrainer:
        return SteppedDrainer(self.api, self.clock, limits=self._limits, on_progress=self._on_progress)
