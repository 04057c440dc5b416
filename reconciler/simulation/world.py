"""A whole simulation: clock, cluster, platform, the ports, and the drainer of the process that runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from reconciler.drainer.messages import Limits
from reconciler.model.drains import DrainProgress
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.outside import WritableOutside
from reconciler.model.ports import SourceClient
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import VirtualClock
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.drains import SteppedDrainer
from reconciler.simulation.log import Log
from reconciler.simulation.machines import SimulatedMachines
from reconciler.simulation.platform import SimulatedPlatform


class World:
    """Everything that a pass is given, and everything that moves around it."""

    def __init__(
        self,
        start: datetime,
        *,
        limits: Limits | None = None,
        prefix: str = DEFAULT_PREFIX,
        on_progress: Callable[[DrainProgress], None] | None = None,
        latency: timedelta = timedelta(milliseconds=20),
    ) -> None:
        """Take the first moment (aware, UTC), and how long a request of the drainer is on its way."""
        self.clock = VirtualClock(start)
        self.log = Log()
        self.cluster = SimulatedCluster(self.clock, self.log)
        self.platform = SimulatedPlatform(self.cluster, prefix=prefix)
        self.api = SimulatedApi(self.cluster)
        self.machines: SimulatedMachines | None = None
        """Who has the machines behind the nodes, None where nobody can be asked."""
        self.clients: dict[str, SourceClient] = {}
        """The clients of the sources that ask a service of their own, by the source's name."""
        self._limits = limits
        self._on_progress = on_progress
        self._latency = latency
        self.drainer = self._new_drainer()

    @property
    def outside(self) -> WritableOutside:
        """What a pass of the process that runs is given."""
        return WritableOutside(
            reader=self.api,
            writer=self.api,
            drainer=self.drainer,
            notifier=self.api,
            clients=self.clients,
            machines=self.machines,
        )

    @property
    def now(self) -> datetime:
        """The time, aware, UTC."""
        return self.clock.now()

    def advance(self, pause: timedelta) -> None:
        """Let time pass."""
        self.clock.advance(self.now + pause)

    def restart(self) -> None:
        """End the process and begin another one: what was only in its memory is gone."""
        self.drainer.kill()
        self.drainer = self._new_drainer()

    def _new_drainer(self) -> SteppedDrainer:
        return SteppedDrainer(
            self.api,
            self.clock,
            limits=self._limits,
            latency=self._latency,
            on_progress=self._on_progress,
        )
