"""When the agent tells Azure that an event may start, and when it checks whether it may.

Aspects: the annotation on the Node, when it is read, the second read right before, refusals, results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from reconciler.sources.imds.agent import program
from tests.sources.imds.agent.conftest import StartAgent
from tests.sources.imds.agent.fake_node_api import VM, Failure, FakeNodeApi
from tests.sources.imds.agent.stepping import ALWAYS, NEVER, World, stepped_agent
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.imds import Answer, FakeImds, event, started

pytestmark = pytest.mark.heavy


REBOOT = event(VM, "Reboot", event_id="A")
OTHERS = event("aks-np-12345678-vmss_10", "Reboot", event_id="B")


@pytest.fixture
def world() -> Iterator[World]:
    """Whose agent looks at its Node at every step."""
    with stepped_agent(reread=ALWAYS) as made:
        yield made


@pytest.fixture
def forgetful() -> Iterator[World]:
    """Whose agent does not look at its Node of its own accord once it has."""
    with stepped_agent(reread=NEVER) as made:
        yield made


def said(capsys: pytest.CaptureFixture[str], message: str) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["event"] == message]


def test_the_agent_acknowledges_the_event_in_its_nodes_annotation_once_and_publishes_its_start(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    imds.announce(REBOOT, OTHERS)
    agent = start_agent("--reread", "0.1")
    api.wait_for_events("A")
    imds.wait_for_requests(5)
    assert imds.acknowledged == []

    api.say('["A","B"]')
    line = agent.wait_for_line("acknowledged")
    wait_for("Started on the Node", lambda: '"Started"' in (api.published or ""))
    imds.wait_for_requests(5)

    assert imds.acknowledged == ["A"]
    assert imds.requests.count("POST") == 1
    assert (line["id"], line["vm"]) == ("A", VM)
    assert len(api.writes) == 2


def test_with_once_the_exit_code_shows_a_refusal(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    imds.announce(REBOOT)
    imds.refuse(Answer(400))
    api.say('["A"]')

    assert start_agent("--once").process.wait(20) == 1


def test_the_prefix_of_the_command_line_is_that_of_both_annotations(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    imds.announce(REBOOT)
    api.say('["A"]')
    api.node["metadata"]["annotations"]["example.com/acknowledge"] = "[]"
    agent = start_agent("--key-prefix", "example.com", "--reread", "0.1")
    agent.wait_for_line("published")
    imds.wait_for_requests(5)
    assert imds.acknowledged == []
    api.node["metadata"]["annotations"]["example.com/acknowledge"] = '["A"]'

    agent.wait_for_line("acknowledged")
    assert "example.com/imds" in api.node["metadata"]["annotations"]


# Looking.


def test_it_looks_at_its_node_often_only_while_an_event_of_its_own_is_to_come(
    forgetful: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "LISTEN", 0.0)
    forgetful.imds.announce(OTHERS, event(VM, event_id=""))
    forgetful.step(times=5)
    assert forgetful.looks == 1

    forgetful.imds.announce(REBOOT, OTHERS)
    forgetful.step(times=6)
    assert forgetful.looks >= 6

    forgetful.imds.announce(started(REBOOT), OTHERS)
    forgetful.step(times=2)
    looks = forgetful.looks
    forgetful.step(times=5)
    assert forgetful.looks == looks


def test_what_it_has_acknowledged_is_no_reason_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LISTEN", 0.0)
    with stepped_agent(reread=NEVER, starts=False) as world:
        world.imds.announce(REBOOT)
        world.api.say('["A"]')
        world.step(times=3)
        assert world.imds.acknowledged == ["A"]
        looks = world.looks
        world.step(times=5)

        assert world.looks == looks


def test_a_later_annotation_is_read_without_the_long_wait(
    forgetful: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "LISTEN", 0.0)
    forgetful.imds.announce(REBOOT)
    forgetful.step(times=2)
    forgetful.api.say('["A"]')
    forgetful.step(times=2)

    assert forgetful.imds.acknowledged == ["A"]


def test_between_two_looks_it_waits(forgetful: World) -> None:
    forgetful.imds.announce(REBOOT)
    forgetful.step()
    looks = forgetful.looks
    forgetful.step(times=5)

    assert forgetful.looks == looks
    assert 5 <= program.LISTEN < program.REREAD


# Reading it again.


def test_the_node_is_read_once_more_right_before(forgetful: World) -> None:
    forgetful.api.say('["A"]')
    forgetful.step()
    assert forgetful.looks == 1
    forgetful.imds.announce(REBOOT)
    forgetful.step()

    assert forgetful.looks == 2
    assert forgetful.imds.acknowledged == ["A"]


@pytest.mark.parametrize("text", [None, "[]", '["B"]', "A"])
def test_what_was_removed_meanwhile_is_not_posted(forgetful: World, text: str | None) -> None:
    forgetful.api.say('["A"]')
    forgetful.step()
    forgetful.api.say(text)
    forgetful.imds.announce(REBOOT)
    forgetful.step(times=3)

    assert forgetful.posts == 0
    assert forgetful.looks == 2


def test_what_was_added_meanwhile_is_posted_too(forgetful: World) -> None:
    forgetful.api.say('["A"]')
    forgetful.step()
    forgetful.api.say('["A","C"]')
    forgetful.imds.announce(REBOOT, event(VM, event_id="C"))
    forgetful.step()

    assert forgetful.imds.acknowledged == ["A", "C"]


def test_a_node_that_can_not_be_read_again_starts_nothing_until_it_can(
    forgetful: World, capsys: pytest.CaptureFixture[str]
) -> None:
    forgetful.api.say('["A"]')
    forgetful.step()
    forgetful.imds.announce(REBOOT)
    forgetful.api.fail("GET", [Failure(500)])
    forgetful.step()
    assert forgetful.posts == 0
    assert said(capsys, "cannot read the Node")

    def posted() -> list[str]:
        forgetful.step()
        return forgetful.imds.acknowledged

    assert wait_for("acknowledgement", posted) == ["A"]


def test_another_node_under_the_same_name_is_obeyed_only_once_it_is_known(forgetful: World) -> None:
    """Azure would not start it at first; meanwhile the Node is another one that bears the same words."""
    forgetful.imds.announce(REBOOT)
    forgetful.imds.refuse(Answer(503))
    forgetful.api.say('["A"]')
    forgetful.step()
    words = forgetful.api.node["metadata"]["annotations"]
    forgetful.api.replace_node("uid-2")
    forgetful.api.node["metadata"]["annotations"] = words
    forgetful.step()
    assert forgetful.posts == 1
    forgetful.step()

    assert forgetful.imds.acknowledged == ["A"]


def test_another_node_that_says_nothing_starts_nothing(forgetful: World) -> None:
    forgetful.imds.announce(REBOOT)
    forgetful.imds.refuse(Answer(503))
    forgetful.api.say('["A"]')
    forgetful.step()
    assert forgetful.posts == 1
    forgetful.api.replace_node("uid-2")
    forgetful.step(times=3)

    assert forgetful.posts == 1
    assert forgetful.imds.acknowledged == []


# Refusals.


@pytest.mark.parametrize("status", [400, 429, 503])
def test_what_imds_refuses_is_tried_again_at_the_next_poll_and_said(
    world: World, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    world.imds.announce(REBOOT)
    world.api.say('["A"]')
    world.imds.refuse(Answer(status), Answer(status))
    world.step(times=2)
    assert (world.posts, world.imds.acknowledged) == (2, [])
    assert [(line["id"], str(status) in line["because"]) for line in said(capsys, "cannot acknowledge")] == [
        ("A", True),
        ("A", True),
    ]
    assert world.agent.failure is not None
    world.step(times=3)

    assert (world.posts, world.imds.acknowledged) == (3, ["A"])
    assert world.agent.failure is None


def test_one_that_is_refused_does_not_keep_another_from_being_started(world: World) -> None:
    world.imds.announce(REBOOT, event(VM, event_id="C"))
    world.api.say('["A","C"]')
    world.imds.refuse(Answer(400))
    world.step()
    assert world.imds.acknowledged == ["C"]
    world.step()

    assert world.imds.acknowledged == ["C", "A"]


def test_while_imds_gives_no_good_answer_nothing_is_posted(world: World) -> None:
    world.imds.announce(REBOOT)
    world.api.say('["A"]')
    world.imds.refuse(Answer(503))
    world.step()
    world.imds.script(Answer(410), Answer(500))
    world.step(times=2)
    assert world.posts == 1
    world.step()

    assert world.imds.acknowledged == ["A"]
