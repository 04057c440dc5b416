"""The clouds that the settings name as sources, for as long as a process lives."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.clients import aws
from reconciler.clients.arm import Arm, connect
from reconciler.clients.aws import Aws
from reconciler.settings.schema import Settings


class Clouds:
    """Keeps the clients over passes, and with them their tokens; follows settings that are read anew."""

    def __init__(self, guard: Callable[[], None] | None = None) -> None:
        """Take what raises LockLost where the lock is not ours; without it nothing may be written.

        Who may not write can't write down either what ARM said, so it is kept here.
        """
        self._guard = guard
        self._made: dict[str, Arm] = {}
        self._aws: Aws | None = None

    def of(self, settings: Settings) -> Arm | None:
        """Return ARM, None where it is switched off."""
        source = settings.sources.arm
        if not source.enabled:
            return None
        name = source.cloud.value
        if name not in self._made:
            self._made[name] = Arm(connect(name), guard=self._guard)
        found = self._made[name]
        found.keep = 0.0 if self._guard else source.every.total_seconds()
        return found

    def ec2(self, settings: Settings) -> Aws | None:
        """Return AWS's EC2, None where it is switched off."""
        source = settings.sources.aws
        if not source.enabled:
            return None
        if self._aws is None:
            self._aws = Aws(aws.connect())
        self._aws.keep = 0.0 if self._guard else source.every.total_seconds()
        return self._aws
