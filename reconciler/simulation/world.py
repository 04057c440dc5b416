"""A whole simulation: clock, cluster, platform, the ports, and the drainer of the running process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from reconciler.drain.ahead import PodsAhead
from reconciler.drain.drainer.messages import Limits
from reconciler.model.drains import DrainProgress
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.ports import CaseHistory, HookRunner, PrometheusReader, SourceClient, WritableOutside
from reconciler.model.snapshot import Self
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import SkewedClock, VirtualClock
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.drains import SteppedDrainer
from reconciler.simulation.log import Log
from reconciler.simulation.machines import SimulatedMachines
from reconciler.simulation.platform import SimulatedPlatform


class World:
    """Everything that a pass uses, and everything that changes around it."""

    def __init__(
        self,
        start: datetime,
        *,
        limits: Limits | None = None,
        prefix: str = DEFAULT_PREFIX,
        on_progress: Callable[[DrainProgress], None] | None = None,
        latency: timedelta = timedelta(milliseconds=20),
    ) -> None:
        """Start at this moment (aware, UTC); `latency` is the delay of each request of the drainer."""
        self.clock = VirtualClock(start)
        self.ours = SkewedClock(self.clock)
        """The clock of the process."""
        self.log = Log()
        self.cluster = SimulatedCluster(self.clock, self.log)
        self.platform = SimulatedPlatform(self.cluster, prefix=prefix)
        self.api = SimulatedApi(self.cluster)
        self.machines: SimulatedMachines | None = None
        """The machine provider of the nodes, None if there is none."""
        self.clients: dict[str, SourceClient] = {}
        """The clients of polled sources, by the source's name."""
        self.prometheus: PrometheusReader | None = None
        """What answers the queries of checks, None if nobody does."""
        self.hooks: HookRunner | None = None
        """What runs the hooks of the settings, None if nothing does."""
        self.history: CaseHistory | None = None
        """What keeps the cases that end, None if nobody does."""
        self._leads_since = start
        self._limits = limits
        self._on_progress = on_progress
        self._latency = latency
        self.drainer = self._new_drainer()

    @property
    def outside(self) -> WritableOutside:
        """What a pass of the running process uses."""
        return WritableOutside(
            reader=self.api,
            writer=self.api,
            drainer=self.drainer,
            notifier=self.api,
            clients=self.clients,
            machines=self.machines,
            hooks=self.hooks,
            history=self.history,
            ahead=PodsAhead(self.api, every=timedelta(), budgets_every=timedelta()),
            itself=Self(leads_since=self._leads_since),
            prometheus=self.prometheus,
        )

    @property
    def now(self) -> datetime:
        """The time, aware, UTC."""
        return self.clock.now()

    def advance(self, pause: timedelta) -> None:
        """Advance the clock."""
        self.clock.advance(self.now + pause)

    def skew(self, ahead: timedelta) -> None:
        """Set the clock of the process ahead of the API server's, or behind it if negative."""
        self.ours.ahead = ahead
        self.cluster.skew = ahead

    def restart(self) -> None:
        """Kill the process and start another one, which has nothing in memory."""
        self.drainer.kill()
        self.drainer = self._new_drainer()
        self._leads_since = self.ours.now()

    def _new_drainer(self) -> SteppedDrainer:
        return SteppedDrainer(
            self.api,
            self.ours,
            limits=self._limits,
            latency=self._latency,
            on_progress=self._on_progress,
        )
