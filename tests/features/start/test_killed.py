"""Of a node that a person started, a killed process leaves what the next one ends in the same state."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.features.start.instruction import Start, key_of, text_of
from reconciler.model.event import Kind
from reconciler.model.instructions import ForEvents, Word
from reconciler.simulation.api import Call, ProcessKilled
from tests.laws.histories import History, visible
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST, minutes
from tests.support.searching import kills
from tests.support.worlds import world_of

POLICY = """
windows: [{schedule: "0 3 29 2 *", duration: 1h}]
events: {Redeploy: {approval: true, outsideWindow: Never}}
budget: {maxUnavailable: 0, spacing: 1h}
uncordon: {settle: 1m}
"""
AT = NOW + minutes(300)


class Run:
    """From the start to the uncordon, with the process killed once, before or after the write of a number."""

    def __init__(self, kill: tuple[int, str] = (0, "")) -> None:
        """Play it; `states` is what anybody could see before the start, while it was drained, and after."""
        asked = {REQUEST: f'{{"kind":"Redeploy","notBefore":"{AT:%Y-%m-%dT%H:%M:%SZ}"}}'}
        pods = [builders.pod(f"web-{number}", "a") for number in range(2)]
        world = world_of([builders.node(annotations=asked), builders.node("b")], pods)
        self.history = History(world, builders.settings(POLICY))
        self.cluster, self.killed = world.cluster, False
        self._seen, self._kill = 0, kill
        world.api.before_write, world.api.after_write = self._at("before"), self._at("after")
        self.states = [self._seen_when_still()]

        event = builders.known(Kind.REDEPLOY, not_before=AT, sources=("request",))
        said = ForEvents(Word("alice", NOW, reason="disk fails"), None, (event,))
        self.cluster.annotate("a", key_of(PREFIX), text_of(Start(said, now=True), builders.node()))
        self.states.append(self._seen_when_still())

        self.cluster.annotate("a", REQUEST, None)
        for _ in range(3):
            self.history.wait(minutes(1))
            self.states.append(self._seen_when_still())

    def _at(self, moment: str) -> Callable[[Call], None]:
        def hook(write: Call) -> None:
            del write
            self._seen += moment == "before"
            if (self._seen, moment) == self._kill and not self.killed:
                self.killed = True
                raise ProcessKilled

        return hook

    def _seen_when_still(self) -> dict[str, object]:
        try:
            self.history.until_still()
        except ProcessKilled:
            self.history.world.restart()
            # The drain goes on without a write.
            self.history.look()
            self.history.until_still()
        return visible(self.history.world)


def test_killed_at_any_write_it_goes_on_as_if_nothing_had_been() -> None:
    whole = Run()
    drained, back = str(whole.states[1]["a"]), str(whole.states[-1]["a"])
    assert "started by alice at T: disk fails" in drained
    assert "web-" not in drained
    assert PREFIX not in back
    assert not whole.cluster.nodes["a"].unschedulable

    for number in kills(whole.history.api.writes):
        for moment in ("before", "after"):
            killed = Run((number, moment))
            assert killed.killed
            assert killed.states == whole.states, f"killed {moment} write {number}"
