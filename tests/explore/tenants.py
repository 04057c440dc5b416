"""What those do who may create pods, and a webhook that denies the eviction of their pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from reconciler.model.errors import ClusterError, Rejected, TooManyRequests
from reconciler.model.limits import EARLIEST
from reconciler.model.pod import DO_NOT_DISRUPT, ON_COMPLETION, SAFE_TO_EVICT, Pod
from reconciler.model.values import replace
from reconciler.simulation.api import Call
from reconciler.simulation.clock import Actor
from reconciler.simulation.cluster import SimulatedCluster
from tests.explore.laws import KEYS
from tests.explore.moves import move
from tests.explore.waits import TENANT

if TYPE_CHECKING:
    from tests.explore.play import Play

_NAME = "vet.example.com"
_LASTS = timedelta(hours=6)
_MOVES_AFTER = timedelta(minutes=2)
_DENIED = f'admission webhook "{_NAME}" denied the request: '


@dataclass(slots=True)
class Webhook:
    """A validating webhook for evictions of a tenant's pods.

    `does` is empty while it admits everything. `denies` refuses, `moves` refuses and lets a
    controller delete the pod, and `fails` does not answer the API server.
    """

    cluster: SimulatedCluster
    does: str = ""
    until: datetime = EARLIEST
    """When it admits everything again (UTC)."""
    _moved: set[str] = field(default_factory=set)

    def refuses(self) -> bool:
        """Whether it refuses evictions now."""
        return bool(self.does) and self.cluster.clock.now() < self.until

    def answer(self, call: Call) -> ClusterError | None:
        """Return why a request is refused, None if it is admitted."""
        pod = call.content
        if not self.refuses() or call.what != "evict" or not isinstance(pod, Pod) or pod.namespace != TENANT:
            return None
        if self.does == "denies":
            return TooManyRequests(f"{_DENIED}not now", status=429, retry_after=2)
        if self.does == "fails":
            return Rejected(f'failed calling webhook "{_NAME}": connection refused', status=500)
        if self.does == "moves":
            if pod.uid not in self._moved:
                self._moved.add(pod.uid)
                self.cluster.clock.after(_MOVES_AFTER, lambda: self._delete(pod.uid))
            return Rejected(f"{_DENIED}the controller moves it", status=500)
        return None

    def _delete(self, uid: str) -> None:
        if uid in self.cluster.pods:
            self.cluster.terminate(uid, None, Actor.SOMEBODY)


@move("tenant", 3, values=("", "denies", "moves", "fails"), on_node=False)
def webhook(play: Play, _: str, value: str) -> None:
    """Let a webhook deny the evictions of a tenant's pods for some hours, or admit them."""
    play.webhook.does = value
    play.webhook.until = play.now + _LASTS


_WAITS = {
    "wait-completed": (KEYS.wait_completed, "true"),
    "do-not-disrupt": (DO_NOT_DISRUPT, "true"),
    "on-completion": (SAFE_TO_EVICT, ON_COMPLETION),
}


@move("tenant", 4, values=tuple(_WAITS))
def pod_waits(play: Play, name: str, value: str) -> None:
    """Let a pod of a tenant ask to finish first."""
    key, text = _WAITS[value]
    for pod in play.tenants_pods(name)[:1]:
        play.cluster.add_pod(replace(pod, annotations={**pod.annotations, key: text}))


@move("tenant", 2, values=("", "budget"), on_node=False)
def tenant(play: Play, _: str, value: str) -> None:
    """Let a tenant forbid every eviction in their namespace, or no longer."""
    play.blocks(on=bool(value))
    play.wake()
