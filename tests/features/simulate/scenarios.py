"""Small scenarios, written down or drawn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from hypothesis import strategies as st

from reconciler.features.simulate.play import play as play_with
from reconciler.features.simulate.scenario import FleetNode, PlayedEvent, Scenario
from reconciler.model.event import Kind
from reconciler.run import PARTS, run_pass
from tests.support.builders import NOW, minutes

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
HOURS = timedelta(hours=4)


def node(name: str, *, drain: float = 10, zone: str = "1", pool: str = "np") -> FleetNode:
    """A node that needs so many minutes for a drain."""
    return FleetNode(name, pool, zone, minutes(drain))


def event(
    name: str, at: float, starts: float, *, kind: Kind = Kind.REBOOT, on: str = "a", **more: object
) -> PlayedEvent:
    """An event that is announced and starts so many minutes after `START`."""
    begins = START + minutes(starts)
    fields: dict[str, object] = {"not_before": begins, "starts": begins, **more}
    return PlayedEvent(name, on, kind, START + minutes(at), **fields)  # type: ignore[arg-type]


def scenario(*events: PlayedEvent, nodes: tuple[FleetNode, ...] = (), hours: float = 4) -> Scenario:
    """Four hours of these events, on the nodes a and b if no others are given."""
    end = START + timedelta(hours=hours)
    return Scenario(START, end, nodes or (node("a"), node("b")), events, "written down")


_NAMES = ("a", "b", "c", "d")
_names = st.sampled_from(_NAMES)
_drains = st.sampled_from((0, 50, 240, 1300))
_notices = st.sampled_from((0, 30, 600, 900, 4000))
_delays = st.sampled_from((0, 0, 400))
_kinds = st.sampled_from((Kind.REBOOT, Kind.REDEPLOY, Kind.PREEMPT, Kind.TERMINATE, Kind.FREEZE))
_lengths = st.sampled_from((200, 600))
_pauses = st.sampled_from((-1, 5))
_rarely = st.sampled_from((False, False, False, True))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Some nodes in two zones, and events of every sort on them, in any order and on top of each other."""
    nodes = tuple(
        FleetNode(name, "np", str(number % 2), timedelta(seconds=draw(_drains)))
        for number, name in enumerate(_NAMES)
    )
    events = []
    for number in range(draw(st.integers(1, 6))):
        at = NOW + timedelta(seconds=draw(st.integers(0, 7200)))
        date = at + timedelta(seconds=draw(_notices))
        begins = date + timedelta(seconds=draw(_delays))
        cancelled = draw(_rarely) and begins > at
        events.append(
            PlayedEvent(
                f"EVENT-{number}",
                draw(_names),
                draw(_kinds),
                at,
                not_before=date,
                starts=begins,
                lasts=timedelta(seconds=draw(_lengths)),
                seconds=draw(_pauses),
                cancelled=at + (begins - at) / 2 if cancelled else None,
                by_request=draw(_rarely),
            )
        )
    return Scenario(NOW, NOW + HOURS, nodes, tuple(events), "drawn")


play = partial(play_with, run_pass=run_pass, parts=PARTS)
