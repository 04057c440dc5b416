"""Keeps what would have been done, pass by pass, and what is known of it for whoever asks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice

from jobs.runtime.line_keeper import Keeper
from jobs.runtime.process import Observer, Passed
from reconciler.features.observed import OBSERVED
from reconciler.features.observed.cases import (
    OBSERVED_CASES,
    Kept,
    ObservedCase,
    Stretch,
    at,
    seen_until,
    to_fields,
)
from reconciler.features.observed.following import Following
from reconciler.features.observed.settings import OBSERVED_SECTION
from reconciler.features.observed.summary import panel, summed_up
from reconciler.features.observed.way import with_steps
from reconciler.kubernetes.kept_lines import KeptInCluster, KeptLines
from reconciler.model.errors import ClusterError, NoThread
from reconciler.model.findings import KnownFindings
from reconciler.model.panels import Panel
from reconciler.model.plan import Plan
from reconciler.model.values import replace
from reconciler.settings.schema import Mode
from reconciler.threads import start

log = logging.getLogger(__name__)

EVERY = 5.0
"""Seconds from a change to its write, and between two writes."""

AGAIN = 60.0
"""Seconds until what was kept is read again after an error."""

MOST = 5_000
"""Cases in memory, the newest ones."""


class Observing(Observer):
    """Follows the cases while the mode is Observe, and lets the cluster keep them.

    Nobody has the lock in this mode. Each replica follows the same cases, and a write counts only if the
    ConfigMap is as this process knows it, so that none undoes another one's.
    """

    def __init__(
        self,
        place: KeptInCluster[Kept],
        now: Callable[[], datetime],
        others: Observer,
        *,
        goes_on: bool = True,
    ) -> None:
        """Keep it in this `place`; `now` is a clock (aware). `others` see what is over.

        `goes_on`: passes follow each other, and none waits for what was kept. Else, the next one is that of
        another process, which knows nothing but what is kept.
        """
        self._place, self._now, self._others, self._goes_on = place, now, others, goes_on
        self._keep = OBSERVED_SECTION.default.keep
        self._keeper: Keeper[Kept, Kept] | None = None
        self._read: KeptLines[Kept] | None = None
        """What was read, None if that can't be read."""
        self._found: KeptLines[Kept] | None = None
        """What an earlier process has kept, once that is known."""
        self._due = 0.0
        self._following: Following | None = None
        self._stretch: Stretch | None = None
        self._cases: dict[tuple[str, str], ObservedCase] = {}
        self._stretches: tuple[Stretch, ...] = ()
        """Those that are over."""
        self._shown: tuple[tuple[Kept, ...], datetime] | None = None
        """The lines as the last pass left them, for other threads, and from when on they are whole."""

    def __exit__(self, *_: object) -> None:
        """Write what waits, for a short time."""
        if self._keeper is not None:
            self._keeper.close()

    @property
    def known(self) -> tuple[Stretch | None, tuple[ObservedCase, ...]]:
        """The time in which this process and those before it observe, None if none does; and the cases."""
        return self._stretch, tuple(self._cases.values())

    def panels(self, passed: Passed, findings: KnownFindings | None) -> Sequence[Panel]:
        """Return the sum of what was observed, while the mode is Observe."""
        if self._shown is None or passed.settings.mode is not Mode.OBSERVE:
            return ()
        lines, whole_from = self._shown
        total = summed_up(lines, passed.plan.now, "", observes=True, whole_from=whole_from)
        return (panel(with_steps(total, passed.settings, findings)),)

    def after(self, passed: Passed) -> None:
        """Follow the cases of a pass in mode Observe; after one in another mode, nothing is observed."""
        plan, settings = passed.plan, passed.settings
        self._keep = OBSERVED_SECTION.of(settings).keep
        if plan.settings.rejected:
            return
        if not (passed.rehearsed and settings.mode is Mode.OBSERVE and self._keep):
            if self._stretch is not None:
                over = replace(self._stretch, until=plan.now.replace(microsecond=0))
                self._say(over)
                self._stretches = (*self._stretches, over)
                self._stretch = self._following = self._shown = None
            return
        if self._found is None:
            self._look()
        if self._found is None:
            return
        if self._keeper is None:
            self._keeper = Keeper(
                self._place, self._now, lambda: self._keep, _folded, known=self._read, every=EVERY
            )
        if self._following is None:
            self._following = self._begun(self._found, plan)
        changed = self._following.see(plan, settings)
        for case in changed:
            before = self._cases.get(case.identity)
            self._say(case)
            if case.over is not None and (before is None or before.over is None):
                self._others.happened(OBSERVED, to_fields(case))
        moved = [case for case in self._following.open.values() if case != self._cases.get(case.identity)]
        if not self._goes_on and (changed or any(map(self._other_pods, moved))):
            for case in moved:
                self._say(case)
        # Starts that move with the clock are kept in memory alone, and in the cluster with other news.
        for case in moved:
            self._cases[case.identity] = case
        for oldest in tuple(islice(self._cases, max(len(self._cases) - MOST, 0))):
            del self._cases[oldest]
        if self._stretch is not None:
            lines: tuple[Kept, ...] = (*self._stretches, self._stretch, *self._cases.values())
            self._shown = lines, self._found.whole_from

    def _other_pods(self, case: ObservedCase) -> bool:
        """Whether there are more or fewer pods on the node than is kept: the platform may start next."""
        before = self._cases.get(case.identity)
        return before is None or before.pods != case.pods

    def _begun(self, found: KeptLines[Kept], plan: Plan) -> Following:
        """Go on where an earlier process, or the mode before this one, has ended."""
        now = plan.now.replace(microsecond=0)
        self._found = KeptLines(found.whole_from if found.lines else min(found.whole_from, now))
        going = None
        for line in found.lines:
            if isinstance(line, ObservedCase):
                self._cases[line.identity] = line
            elif line.until is None:
                going = going or line
            else:
                self._stretches = (*self._stretches, line)
        # In this mode nobody says in the lock that a pass has ended. `serve` ends the time itself.
        acted = plan.reconciler.last_pass
        if going is not None and not self._goes_on and acted is not None and acted > going.since:
            over = replace(going, until=seen_until(found.lines, going.since))
            self._say(over)
            self._stretches, going = (*self._stretches, over), None
        self._stretch = going or Stretch(now)
        if going is None:
            self._say(self._stretch)
        return Following(self._cases.values())

    def _say(self, line: Kept) -> None:
        if isinstance(line, ObservedCase):
            self._cases.pop(line.identity, None)
            self._cases[line.identity] = line
        if self._keeper is not None:
            self._keeper.add(line)

    def _look(self) -> None:
        """Read what is kept, where passes go on in a thread: none waits for it. A later pass looks again."""
        if not self._goes_on:
            self._find()
            return
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + AGAIN
        with suppress(NoThread):
            start("observed cases", self._find)

    def _find(self) -> None:
        nothing: KeptLines[Kept] = KeptLines(self._now())
        try:
            self._read = self._place.read() or nothing
            self._found = self._read
        except ValueError:
            # Who writes it says so.
            self._found = nothing
        except ClusterError as error:
            log.warning("what was observed before can't be read: %s", error.because)
            if not error.temporary:
                self._found = nothing


def _folded(kept: KeptLines[Kept], lines: Sequence[Kept], since: datetime) -> KeptLines[Kept]:
    """Return what is kept with these lines; other replicas may have written some of the same cases."""
    if not kept.lines:
        begins = (line.since if isinstance(line, Stretch) else at(line) for line in lines)
        kept = replace(kept, whole_from=min(kept.whole_from, *begins))
    before = {case.identity: case.announced for case in kept.lines if isinstance(case, ObservedCase)}
    first = (
        replace(line, announced=min(line.announced, before.get(line.identity, line.announced)))
        if isinstance(line, ObservedCase)
        else line
        for line in lines
    )
    return kept.with_lines(OBSERVED_CASES, first, since)
