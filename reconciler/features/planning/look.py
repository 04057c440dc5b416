"""How moments and texts of a look ahead are shown."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.features.planning.moments import moment_text


class Look(Struct, frozen=True):
    """From `now` on (UTC), in `zone`, `width` columns; `cut` stands for what has no room."""

    now: datetime
    zone: ZoneInfo
    width: int
    cut: str

    def moment(self, moment: datetime | None) -> str:
        """Return a moment in a few columns; None is `unknown`."""
        return moment_text(moment, self.now, self.zone)
