"""Publishes in each namespace what happens to its pods, and reads it. An error in one harms no other one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

from msgspec import Struct

from reconciler.features.pods import PUBLISHED
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.features.pods.published import Published, from_config_map
from reconciler.http.retrying import Guard
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection, Request, core
from reconciler.kubernetes.json_patch import Patch, send_patch
from reconciler.kubernetes.kept_lines import KeptInCluster
from reconciler.model import limits
from reconciler.model.errors import ClusterError, Forbidden, LockLost, NotFound, Rejected
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.problems import internal

log = logging.getLogger(__name__)

OF = f"{DEFAULT_PREFIX}/reconciler-namespace"
"""The label of a ConfigMap of ours: the namespace of the reconciler that writes it."""

MOST_NAMESPACES = 1000
"""Namespaces in which something is published, at most."""

APART = 300.0
"""Seconds between two writes into a namespace."""

AGAIN, LONGEST_PAUSE = 600.0, 6 * 3600.0
"""Seconds until a write that failed is tried again: the first pause, which doubles, and the longest one."""

AT_ONCE = 100
"""Namespaces that are written in one turn."""

TURN = 30.0
"""Seconds after which a turn begins no other write."""

IN_A_ROW = 10
"""Failures one after the other that end a turn: probably all others fail as well."""

_PATIENCE = 5.0
"""Seconds for a request and its repetitions."""


class _State(Struct):
    """What is known of a namespace: the data that it has, None if not known, and when it is due again."""

    data: Mapping[str, str] | None = None
    due: float = 0.0
    pause: float = 0.0
    said: bool = False


class Publisher:
    """The ConfigMaps in namespaces; for one thread."""

    def __init__(
        self, connection: Connection, guard: Guard, own: str, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """Write as the reconciler in the namespace `own`; `guard` raises LockLost if the lock is not ours.

        `seconds` is a clock that never goes back.
        """
        self._connection, self._guard, self._own, self._seconds = connection, guard, own, seconds
        self._known: dict[str, _State] = {}
        self._said: set[str] = set()

    def turn(self, wanted: Mapping[str, Mapping[str, str]], gone: Collection[str]) -> frozenset[str]:
        """Let each wanted namespace have its data, and those that are `gone` no ConfigMap.

        Return those of `gone` that have none any more. What is left is done by a later turn. Raises LockLost.
        """
        self._known = {name: self._known.get(name, _State()) for name in (*wanted, *gone)}
        began, tried, failed = self._seconds(), 0, 0
        done: set[str] = set()
        # Those that have waited longest come first.
        for name in sorted(self._known, key=lambda name: self._known[name].due):
            state, data = self._known[name], wanted.get(name)
            now = self._seconds()
            # What has nothing to be told any more is deleted at once, unless that has failed.
            waits = state.due > now and (data is not None or state.pause > 0)
            if waits or (data is not None and state.data == data):
                continue
            if tried >= AT_ONCE or failed >= IN_A_ROW or now - began > TURN:
                break
            tried += 1
            try:
                if data is None:
                    self.delete(name)
                    done.add(name)
                else:
                    self._write(name, data)
            except NotFound:
                # The namespace is gone, or its pods would be new ones.
                state.data, state.due = None, now + LONGEST_PAUSE
                if data is None:
                    done.add(name)
            except LockLost:
                raise
            except Exception as error:  # noqa: BLE001 - one namespace harms that namespace only
                failed += 1
                state.data, state.pause = None, min(max(2 * state.pause, AGAIN), LONGEST_PAUSE)
                state.due = now + state.pause
                self._say(name, state, error)
            else:
                failed = 0
                self._known[name] = _State(data, now + APART)
        if not any(state.said for state in self._known.values()):
            self._said.clear()
        return frozenset(done)

    def delete(self, namespace: str) -> None:
        """Delete the ConfigMap in a namespace, if there is one of ours; raises LockLost and ClusterError."""
        path = core(namespace) / "configmaps" / PUBLISHED
        present = objects.find(self._connection, path, objects.ConfigMap, patience=_PATIENCE)
        if present is None or (present.metadata.labels or {}).get(OF) != self._own:
            return
        body = {"preconditions": {"uid": present.metadata.uid}}
        objects.send(self._connection, self._guard, Request("DELETE", path, body=body), patience=_PATIENCE)

    def _write(self, namespace: str, data: Mapping[str, str]) -> None:
        place = core(namespace) / "configmaps"
        present = objects.find(self._connection, place / PUBLISHED, objects.ConfigMap, patience=_PATIENCE)
        if present is None:
            labels = {OF: self._own, "app.kubernetes.io/part-of": "node-maintenance-reconciler"}
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": PUBLISHED, "labels": labels},
                "data": dict(data),
            }
            self._guard()
            self._connection.send(Request("POST", place, body=body))
            return
        owner = (present.metadata.labels or {}).get(OF)
        if owner != self._own:
            whose = f"of the reconciler in {owner}" if owner else "not of a reconciler"
            raise Rejected(f"there is a ConfigMap {PUBLISHED} already, which is {whose}; delete it")
        before = present.data or {}
        if before == data:
            return
        patch = Patch(present.metadata.uid, present.metadata.resourceVersion)
        changes = {key: text for key, text in data.items() if before.get(key) != text}
        patch.change_texts({}, changes, "data", exists=bool(present.data))
        self._guard()
        send_patch(self._connection, place / PUBLISHED, patch)

    def _say(self, namespace: str, state: _State, error: Exception) -> None:
        """Log once for a namespace why nothing is published in it, and once what is the same for others."""
        if isinstance(error, ClusterError):
            why = _why(error)
        else:
            why = internal(f"pods are not published in {namespace}", error)
        kind = why.replace(namespace, "…")
        if not state.said and kind not in self._said:
            log.warning("pods are not published in the namespace %s: %s", namespace, why)
        state.said = True
        if len(self._said) < AT_ONCE:
            self._said.add(kind)


def _why(error: ClusterError) -> str:
    """Return why a write was refused: a 403 also comes from a quota, or while a namespace ends."""
    lacks_right = isinstance(error, Forbidden) and " cannot " in str(error)
    return f"{error.because}, see k8s/pods" if lacks_right else str(error)


def recorded_in(text: str) -> tuple[str, ...]:
    """Return the namespaces that a text beside the moved pods names, as far as they are names; sorted."""
    names = text[: MOST_NAMESPACES * limits.NAME].split()
    return tuple(sorted(set(filter(limits.is_object_name, names)))[:MOST_NAMESPACES])


def read_published(connection: Connection, namespace: str) -> Published | None:
    """Return what is published in a namespace, None if nothing is.

    Raises ClusterError, and ValueError if it can't be read.
    """
    path = core(namespace) / "configmaps" / PUBLISHED
    present = objects.find(connection, path, objects.ConfigMap)
    return from_config_map(present.data or {}, namespace) if present is not None else None


class PublishedMaps:
    """The port through which a release deletes all ConfigMaps."""

    def __init__(self, connection: Connection, guard: Guard, own: str) -> None:
        """Use this connection as the reconciler in the namespace `own`; `guard` as in `Publisher`."""
        self._place = KeptInCluster(MOVED_PODS, connection, own)
        self._publisher = Publisher(connection, guard, own)

    def namespaces(self) -> tuple[str, ...]:
        """Return the namespaces that may have one; raises ClusterError."""
        kept = self._place.read_for_person()
        return recorded_in(kept.beside) if kept is not None else ()

    def delete(self, namespace: str) -> None:
        """Delete the one in a namespace; raises LockLost and ClusterError."""
        self._publisher.delete(namespace)
