"""A plugin: the firmware updates of a data center, which its tools write to annotations of the node.

`firmware.example.com/update` is when the update begins, such as `2026-11-28T21:00:00Z`, and `running` while
it runs. A node with `firmware.example.com/backup: running` is not drained before its backup ends.
"""

from __future__ import annotations

from pydantic import Field

from reconciler.model.event import Answer, Kind, Reading, Signal, Status
from reconciler.model.moments import from_text
from reconciler.model.node import Node
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, check, failed, passed
from reconciler.settings.fields import Flag, Section
from reconciler.settings.schema import Settings, SourceSection

RELIES_ON = 1
UPDATE = "firmware.example.com/update"
BACKUP = "firmware.example.com/backup"


class FirmwareSettings(Section):
    """Firmware updates."""

    enabled: Flag = Field(default=True, description="Whether they are read.")


SECTION = SourceSection[FirmwareSettings](
    key="firmware", type=FirmwareSettings, default=FirmwareSettings(), description="Firmware updates."
)
SECTIONS = (SECTION,)


class Firmware(Source):
    """The updates, from the annotation of the node."""

    name = "firmware"
    reports_start = True
    who = "the data center: `kubectl annotate node {node} firmware.example.com/update-` removes the update"

    def enabled(self, settings: Settings) -> bool:
        """Whether `sources.firmware` is on."""
        return SECTION.of(settings).enabled

    def wants(self, settings: Settings) -> Wants:
        """Return both annotations: the check reads the second."""
        return Wants(annotations=frozenset({UPDATE, BACKUP}))

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return the update of the node."""
        text = node.annotations.get(UPDATE)
        if text is None:
            return (Reading(self.name, Answer.NO_EVENT),)
        try:
            begins = None if text == "running" else from_text(text)
        except ValueError as error:
            return (Reading(self.name, Answer.UNKNOWN, because=f"{UPDATE}: {error}"),)
        status = Status.STARTED if begins is None else Status.SCHEDULED
        signal = Signal(self.name, Kind.REBOOT, status, begins, description="a firmware update")
        return (Reading(self.name, Answer.EVENT, (signal,)),)


SOURCES = (Firmware(),)


@check(
    "noBackup",
    starts=True,
    ordinarily="no backup runs",
    who="nobody: it ends with the backup",
    by_itself=True,
)
def no_backup(situation: Situation) -> CheckResult:
    """Pass unless a backup of the node runs."""
    if situation.node.annotations.get(BACKUP) == "running":
        return failed(f"a backup runs ({BACKUP})")
    return passed()
