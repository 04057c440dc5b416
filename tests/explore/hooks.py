"""Hooks of nodes and of pods, and the service behind the hooks of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.model.values import replace
from tests.explore.hook_service import ANSWERS
from tests.explore.laws import KEYS
from tests.explore.moves import move

if TYPE_CHECKING:
    from tests.explore.play import Play

_STEPS = ("pre-drain", "post-drain", "pre-uncordon")
_NAMES = tuple(f"{step}.{name}" for name in ("leader", "sync") for step in _STEPS)


@move("hook", 6, values=_NAMES)
def hook(play: Play, name: str, value: str) -> None:
    """Annotate a node with a hook."""
    play.cluster.annotate(name, f"{KEYS.prefix}/{value}", "team storage")


@move("hook", 4, values=_NAMES)
def hook_done(play: Play, name: str, value: str) -> None:
    """Remove a hook of a node, as its owner does."""
    play.cluster.annotate(name, f"{KEYS.prefix}/{value}", None)


@move("hook", 3, values=("pre-drain.leader", "pre-drain.other", "post-drain.leader", "pre-uncordon.leader"))
def pod_hook(play: Play, name: str, value: str) -> None:
    """Let a tenant annotate a pod of theirs with a hook; only `pre-drain` holds anything there."""
    for pod in play.tenants_pods(name)[:1]:
        key = f"{KEYS.prefix}/{value}"
        play.cluster.add_pod(replace(pod, annotations={**pod.annotations, key: "tenant"}))


@move("hook", 3, values=ANSWERS, on_node=False)
def hook_service(play: Play, _: str, value: str) -> None:
    """Let the hooks of the settings be done, fail, be silent, or never end."""
    play.hooks.answer = value
    play.wake()
