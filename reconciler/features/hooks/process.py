"""Runs the hooks that the settings name. Each kind has its own client, made when it is first asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from jobs.runtime.process import PassPorts, Ports, Process
from reconciler.features.hooks.hook import RUNNER, HookAnswer, HookKey, HookKind, HookRun
from reconciler.model.errors import NotFound
from reconciler.model.ports import RequestProgress

if TYPE_CHECKING:
    from reconciler.features.hooks.jobs import HookJobs
    from reconciler.features.hooks.requests import HookRequests
    from reconciler.http.retrying import Guard
    from reconciler.kubernetes.connection import Connection
    from reconciler.settings.schema import Settings


class SettingsHooks:
    """HookReader and HookRunner for the hooks of one settings file."""

    def __init__(
        self, connection: Connection, namespace: str, settings: Settings, guard: Guard | None = None
    ) -> None:
        """Use this connection; Jobs are in this namespace. Without a guard it only reads."""
        from reconciler.http.retrying import read_only

        self._connection = connection
        self._namespace = namespace
        self._settings = settings
        self._guard = guard or read_only

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """Return what each of these runs does now."""
        jobs = [key for key in keys if key.id.kind is HookKind.JOB]
        webhooks = [key for key in keys if key.id.kind is HookKind.WEBHOOK]
        found = dict(self._jobs.answers(jobs)) if jobs else {}
        return {**found, **self.requests.answers(webhooks)} if webhooks else found

    def run(self, run: HookRun) -> None:
        """Begin the run, or do nothing if an earlier pass has; raises ClusterError."""
        from reconciler.features.hooks.settings import HOOKS

        wanted = run.key.id
        hooks = HOOKS.of(self._settings).of(wanted.step)
        hook = next((hook for hook in hooks if (hook.name, hook.kind) == (wanted.name, wanted.kind)), None)
        if hook is None:
            raise NotFound(f"the settings have no hook {wanted} any more")
        if hook.job is not None:
            self._jobs.run(run, hook.job)
        if hook.webhook is not None:
            self.requests.run(run, hook.webhook)

    def progress(self) -> RequestProgress:
        """Return what was asked of webhooks. A Job keeps its answer itself."""
        return self.requests.progress() if "requests" in self.__dict__ else RequestProgress()

    @cached_property
    def requests(self) -> HookRequests:
        """The webhooks."""
        from reconciler.features.hooks.requests import HookRequests

        return HookRequests(self._guard)

    @cached_property
    def _jobs(self) -> HookJobs:
        from reconciler.features.hooks.jobs import HookJobs

        prefix = self._settings.keys.prefix
        return HookJobs(self._connection, self._namespace, prefix, self._guard)


def _ports(given: Ports) -> Callable[[Settings], PassPorts]:
    # A command without settings, such as a drain by hand, loads none.
    from reconciler.features.hooks.settings import HOOKS

    def of(settings: Settings) -> PassPorts:
        if not HOOKS.of(settings).configured:
            return PassPorts()
        runner = SettingsHooks(given.connection, given.target.namespace, settings, given.guard)
        return PassPorts(clients={RUNNER.name: runner})

    return of


PROCESS = Process(ports=_ports)
