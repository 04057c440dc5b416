"""Jobs as hooks: created once for each run, and read until they have succeeded.

Every run has a name of its own, so a Job that an earlier process has created is found again. Its Node owns
it: it is deleted with the node, or a day after its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import timedelta
from math import ceil
from typing import Any

import msgspec

from reconciler.features.hooks.hook import HookAnswer, HookKey, HookRun, HookState
from reconciler.features.hooks.settings import JobHook
from reconciler.http.retrying import Guard, patiently
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection, Request, api
from reconciler.kubernetes.wire.shapes import decode
from reconciler.model import limits
from reconciler.model.errors import ClusterError, Conflict, NotFound, Unreachable
from reconciler.model.keys import OwnKeys, keys_of
from reconciler.model.moments import to_text

PATIENCE = 2.0
"""Seconds. The next pass tries again."""

AGAIN = timedelta(seconds=10)
"""After this time a Job that runs is read again: nothing else wakes a pass at its end."""

KEPT = timedelta(days=1)
"""How long a Job is kept after its end, for its logs."""

_SAID = 200
_MANAGED_BY = "app.kubernetes.io/managed-by"
_LONGEST_LABEL = 63


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Job(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class HookJobs:
    """The Jobs of one namespace."""

    def __init__(self, connection: Connection, namespace: str, prefix: str, guard: Guard) -> None:
        """Use this connection, and call the guard before each write; `prefix` is that of our keys."""
        self._connection = connection
        self._namespace = namespace
        self._keys = keys_of(prefix)
        self._guard = guard

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """Return what the Job of each run does; after no answer at all, no more of them are read."""
        found: dict[HookKey, HookAnswer] = {}
        silent = ""
        for key in keys:
            if silent:
                found[key] = HookAnswer(HookState.UNKNOWN, silent, AGAIN)
                continue
            try:
                found[key] = self._answer(key)
            except ClusterError as error:
                because = limits.text(f"its Job can't be read: {error}", _SAID)
                found[key] = HookAnswer(HookState.UNKNOWN, because, AGAIN)
                silent = because if isinstance(error, Unreachable) else ""
        return found

    def run(self, run: HookRun, hook: JobHook) -> None:
        """Create the Job of a run, unless there is one; raises ClusterError."""
        body = job(run, hook, self._keys, self._namespace)
        path = api("batch", "v1", self._namespace) / "jobs"
        request = Request("POST", path, body=body, read_timeout=PATIENCE, total=PATIENCE)
        try:
            objects.send(self._connection, self._guard, request, patience=PATIENCE)
        except Conflict:
            # It was created before, by this request or by a process that was killed.
            return

    def _answer(self, key: HookKey) -> HookAnswer:
        path = api("batch", "v1", self._namespace) / "jobs" / key.name

        def read() -> bytes:
            return self._connection.send(Request("GET", path, read_timeout=PATIENCE, total=PATIENCE))

        try:
            found = decode(_Job, patiently(read, patience=PATIENCE, sleep=self._connection.sleep))
        except NotFound:
            return HookAnswer(HookState.ABSENT)
        name = f"Job {self._namespace}/{key.name}"
        true = {one.type: one for one in found.status.conditions or () if one.status == "True"}
        if "Complete" in true or "SuccessCriteriaMet" in true:
            return HookAnswer(HookState.DONE, f"{name} has succeeded")
        if (failed := true.get("Failed") or true.get("FailureTarget")) is not None:
            why = ": ".join(text for text in (failed.reason, failed.message) if text)
            return HookAnswer(HookState.FAILED, limits.text(f"{name} has failed: {why}", _SAID))
        suspended = "Suspended" in true
        return HookAnswer(HookState.RUNNING, f"{name} {'is suspended' if suspended else 'runs'}", AGAIN)


def job(run: HookRun, hook: JobHook, keys: OwnKeys, namespace: str) -> dict[str, Any]:
    """Return the Job of a run as an object, with what the settings leave out."""
    key, spec = run.key, deepcopy(dict(hook.spec))
    labels = {_MANAGED_BY: "node-maintenance-reconciler", f"{keys.prefix}/hook": str(key.id)[:_LONGEST_LABEL]}
    spec.setdefault("ttlSecondsAfterFinished", int(KEPT.total_seconds()))
    spec.setdefault("activeDeadlineSeconds", max(ceil(run.lasts.total_seconds()), 1))
    pod = spec["template"]["spec"]
    pod.setdefault("restartPolicy", "Never")
    if hook.on_node:
        pod["nodeName"] = key.node
    variables = {
        "NODE_NAME": key.node,
        "HOOK_STEP": key.id.step.value,
        "HOOK_NAME": key.id.name,
        "HOOK_UNTIL": to_text(run.until),
        "MAINTENANCE_KIND": run.event,
        "MAINTENANCE_NOT_BEFORE": to_text(run.not_before) if run.not_before is not None else "",
    }
    for container in (*(pod.get("initContainers") or ()), *pod["containers"]):
        ours = [{"name": name, "value": value} for name, value in variables.items()]
        container["env"] = [*ours, *(container.get("env") or ())]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": key.name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {f"{keys.prefix}/node": key.node},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": key.node, "uid": key.uid}],
        },
        "spec": spec,
    }
