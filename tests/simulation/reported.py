"""What every program on nodes that reports VM events does in a simulation; a plugin tests its own with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.event import Answer, Kind, Reading, Status
from reconciler.simulation.platform import Reporter, VmEvent
from reconciler.simulation.world import World
from tests.simulation.building import START, name, world

MINUTE = timedelta(minutes=1)
KINDS = (Kind.FREEZE, Kind.LIVE_MIGRATION, Kind.REBOOT, Kind.REDEPLOY, Kind.PREEMPT, Kind.TERMINATE)


def event(kind: Kind, reporter: Reporter = Reporter.BOTH, minutes: int = 15) -> VmEvent:
    """An event of the first node."""
    return VmEvent(name(0), kind, START + timedelta(minutes=minutes), seconds=5, reported_by=reporter)


class Reported:
    """The tests of a source that reads what the platform's events make of the first node.

    `reporter` says which events are for it, and `other` which are not.
    """

    reporter: Reporter
    other: Reporter

    def read(self, there: World) -> Reading:
        """What the source says of the first node."""
        raise NotImplementedError

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_source_reads_what_the_platform_reports(self, kind: Kind) -> None:
        there, planned = world(1), event(kind)
        there.platform.announce(planned)

        (signal,) = self.read(there).signals
        assert (signal.kind, signal.status) == (kind, Status.SCHEDULED)
        assert (signal.not_before, signal.duration) == (planned.not_before, timedelta(seconds=5))
        assert signal.id == planned.event_id

    def test_a_started_event_is_reported_without_a_date_until_it_is_over(self) -> None:
        there = world(1)
        there.platform.announce(event(Kind.FREEZE))
        there.advance(15 * MINUTE)

        (signal,) = self.read(there).signals
        assert (signal.status, signal.not_before) == (Status.STARTED, None)
        there.advance(10 * MINUTE)
        assert self.read(there).answer is Answer.NO_EVENT

    def test_an_event_is_reported_only_where_it_names_the_reporter(self) -> None:
        for reporter, count in ((self.reporter, 1), (self.other, 0), (Reporter.BOTH, 1)):
            there = world(1)
            there.platform.announce(event(Kind.REBOOT, reporter))

            assert len(self.read(there).signals) == count

    def test_a_cancelled_event_is_no_longer_reported_and_nothing_happens(self) -> None:
        there, planned = world(1), event(Kind.REBOOT)
        there.platform.announce(planned)
        there.platform.cancel(planned)

        assert self.read(there).answer is Answer.NO_EVENT
        there.advance(60 * MINUTE)
        assert there.cluster.nodes[name(0)].ready

    def test_a_failure_strikes_without_notice(self) -> None:
        there = world(1)
        there.platform.strike(event(Kind.REDEPLOY))

        assert [one.status for one in self.read(there).signals] == [Status.STARTED]
        assert not there.cluster.nodes[name(0)].ready
