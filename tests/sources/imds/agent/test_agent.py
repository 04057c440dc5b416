"""The whole agent, between an IMDS and an API server that do as the test says: as a process, or by steps.

Aspects: what is published and when, what is not written, moods of IMDS, moods of the API server, readiness,
the end, command line.
"""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

import pytest

from reconciler import USER_AGENT
from reconciler.sources.imds.agent.program import (
    LONGEST_IMDS_PAUSE,
    LONGEST_WAIT,
    SILENCE,
    STUCK,
    Health,
    main,
    run,
)
from tests.sources.imds.agent.conftest import StartAgent
from tests.sources.imds.agent.fake_node_api import KEY, PROVIDER_ID, VM, Failure, FakeNodeApi
from tests.sources.imds.agent.running import SERVICE
from tests.sources.imds.agent.stepping import INTERVAL, NEVER, HandClock, stepped_agent
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.imds import Answer, FakeImds, event, started

pytestmark = pytest.mark.heavy


def test_an_event_is_published_as_it_came_then_as_started_then_as_none(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    freeze = event(VM, event_id="A")
    imds.announce(freeze, event("aks-np-12345678-vmss_10", event_id="B"))
    start_agent()

    api.wait_for_events("A")
    assert json.loads(api.published or "") == {"version": 1, "vm": VM, "events": [freeze]}
    imds.announce(started(freeze))
    wait_for("Started", lambda: '"Started"' in (api.published or ""))
    imds.announce()
    api.wait_for_events()
    assert json.loads(api.published or "") == {"version": 1, "vm": VM, "events": []}
    assert len(api.writes) == 3
    assert api.node["metadata"]["annotations"]["other"] == "kept"


def test_where_there_has_never_been_an_event_nothing_is_ever_written(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    start_agent().wait_until_ready()
    imds.wait_for_requests(5)
    imds.announce(event("aks-np-12345678-vmss_10"))
    imds.wait_for_requests(5)

    assert api.writes == []
    assert api.published is None


def test_nothing_is_written_while_our_events_stay_the_same(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    ours, other = event(VM, event_id="A"), event("another", event_id="B")
    imds.announce(ours)
    start_agent()
    api.wait_for_events("A")
    asked = len(api.requests)

    for events in ([ours], [ours, other], [other, ours], [ours]):
        imds.announce(*events)  # each is a new incarnation
        imds.wait_for_requests(3)

    assert len(api.writes) == 1
    assert len(api.requests) == asked


def test_a_new_agent_finds_what_the_last_one_published_and_writes_nothing(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    imds.announce(event(VM, event_id="A"))
    with start_agent():
        api.wait_for_events("A")
    start_agent().wait_until_ready()
    imds.wait_for_requests(3)

    assert len(api.writes) == 1


def test_a_new_agent_takes_back_what_the_last_one_published_and_has_gone_since(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    imds.announce(event(VM, event_id="A"))
    with start_agent():
        api.wait_for_events("A")
    imds.announce()
    start_agent()

    api.wait_for_events()


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([Answer(410)], id="410"),
        pytest.param([Answer(429)], id="429"),
        pytest.param([Answer(500), Answer(503)], id="5xx"),
        pytest.param([Answer(200, b"")], id="empty"),
        pytest.param([Answer(200, b'{"Events":', cut=True)], id="broken off"),
        pytest.param([Answer(200, b"<html>")], id="not JSON"),
        pytest.param([Answer(200, b'{"error":"x"}')], id="no events"),
        pytest.param([Answer(302, b"", {"Location": "http://127.0.0.1:9/"})], id="sent elsewhere"),
    ],
)
def test_a_bad_answer_changes_nothing_and_the_next_good_one_counts(
    capsys: pytest.CaptureFixture[str], answers: list[Answer]
) -> None:
    with stepped_agent(reread=NEVER, clock=HandClock()) as world:
        world.imds.announce(event(VM, event_id="A"))
        world.step()
        world.imds.announce()
        world.imds.script(*answers)
        for _ in answers:
            world.step()
            assert world.api.published_ids() == ["A"]
        world.step()

        assert world.api.published_ids() == []
        assert len(world.api.writes) == 2
    logged = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert logged.count("IMDS gives no good answer") == len(answers)
    assert "IMDS answers again" in logged


def test_imds_is_left_alone_for_as_long_as_it_asks() -> None:
    with stepped_agent(reread=NEVER, clock=HandClock()) as world:
        world.imds.script(Answer(429, headers={"Retry-After": "30"}))

        assert world.agent.step() == 30
        assert world.agent.step() == INTERVAL


def test_the_pause_after_a_failure_counts_from_the_answer() -> None:
    clock = HandClock()

    def late() -> Answer:
        clock.seconds += 100
        return Answer(500)

    with stepped_agent(reread=NEVER, clock=clock) as world:
        world.imds.next_answer = late  # type: ignore[method-assign]  # the answer takes its time

        assert world.agent.step() == INTERVAL


def test_proxies_of_the_environment_are_passed_by(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    nowhere = "http://127.0.0.1:9"
    start_agent(environment={"http_proxy": nowhere, "HTTP_PROXY": nowhere, "ALL_PROXY": nowhere})
    imds.announce(event(VM, event_id="A"))

    api.wait_for_events("A")


def test_spot_nodes_are_watched_each_second_and_others_each_five(
    start_agent: StartAgent, api: FakeNodeApi
) -> None:
    api.node["metadata"]["labels"]["kubernetes.azure.com/scalesetpriority"] = "spot"
    with start_agent(interval=None) as agent:
        assert agent.wait_for_line("watching")["intervalSeconds"] == 1
    api.node["metadata"]["labels"].clear()
    with start_agent(interval=None) as agent:
        assert agent.wait_for_line("watching")["intervalSeconds"] == 5


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Failure(500), id="500"),
        pytest.param(Failure(403, "denied by the policy"), id="403"),
        pytest.param(Failure(409), id="409"),
        pytest.param(Failure(0), id="hangs up"),
        pytest.param(Failure(0, after_doing_it=True), id="does it and hangs up"),
    ],
)
def test_a_failed_write_is_tried_again_though_the_events_stay_and_until_then_the_agent_is_not_ready(
    failure: Failure,
) -> None:
    clock = HandClock()
    with stepped_agent(reread=NEVER, clock=clock) as world:
        world.step()
        assert world.unready == ""
        world.api.fail("PATCH", [failure])
        world.imds.announce(event(VM, event_id="A"))
        world.step()
        assert world.unready.partition(":")[0] == "cannot publish"
        clock.seconds += 1
        world.step()

        assert world.api.published_ids() == ["A"]
        assert world.unready == ""
        assert len(world.api.writes) == 1


def test_what_a_lost_answer_left_behind_is_removed() -> None:
    """The write was done, its answer was lost, the event has gone: memory alone would say 'as published'."""
    clock = HandClock()
    with stepped_agent(reread=NEVER, clock=clock) as world:
        world.step()
        world.api.fail("PATCH", [Failure(0, after_doing_it=True)])
        world.imds.announce(event(VM, event_id="A"))
        world.step()
        assert world.agent.failure is not None
        assert world.api.published_ids() == ["A"]
        world.imds.announce()
        clock.seconds += 1
        world.step()

        assert world.api.published_ids() == []


def test_an_annotation_that_someone_removed_is_published_again(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    imds.announce(event(VM, event_id="A"))
    start_agent("--reread", "0.2")
    api.wait_for_events("A")

    del api.node["metadata"]["annotations"][KEY]
    api.wait_for_events("A")
    api.node["metadata"]["annotations"][KEY] = '{"version":1,"vm":"x","events":[]}'
    api.wait_for_events("A")


def test_another_node_under_the_same_name_is_noticed_and_published_to(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    agent = start_agent()
    agent.wait_until_ready()
    api.replace_node("uid-2")
    imds.announce(event(VM, event_id="A"))

    api.wait_for_events("A")
    assert api.writes[-1]["metadata"]["uid"] == "uid-2"


def test_a_node_without_the_provider_id_of_azure_never_leads_to_a_question_to_imds(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    api.node["spec"]["providerID"] = ""
    agent = start_agent()

    agent.wait_for_line("cannot tell which VM this is")
    assert agent.readiness()[0] == 503
    assert imds.requests == []
    # A Node is registered before the cloud provider has given it its id.
    api.node["spec"]["providerID"] = PROVIDER_ID
    agent.wait_until_ready()


def test_a_rotated_token_is_used(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent, token_file: Path
) -> None:
    start_agent().wait_until_ready()
    token_file.write_text("second\n", encoding="utf-8")
    imds.announce(event(VM, event_id="A"))
    api.wait_for_events("A")

    assert (api.tokens[0], api.tokens[-1]) == ("first", "second")
    assert set(api.user_agents) == set(imds.user_agents) == {f"{USER_AGENT} agent"}


def test_an_api_server_in_trouble_is_asked_less_and_less_often() -> None:
    clock = HandClock()
    with stepped_agent(reread=NEVER, clock=clock) as world:
        world.api.fail("GET", [Failure(500)] * 3)
        pauses = []
        for asked in (1, 2, 3):
            pauses.append(world.agent.step())
            assert world.api.requests == ["GET"] * asked
            # Just before its time it does not ask, and says how long it still waits.
            clock.seconds += pauses[-1] - 0.25
            assert world.agent.step() == pytest.approx(0.25)
            assert world.api.requests == ["GET"] * asked
            clock.seconds += 0.25
        world.agent.step()

        assert world.agent.failure is None
        assert world.api.requests == ["GET"] * 4
        # By chance from half of 1, 2 and 4 seconds up to all of it.
        assert all(2**n / 2 <= pause <= 2**n for n, pause in enumerate(pauses)), pauses


def test_an_api_server_that_was_in_trouble_once_is_asked_again_as_soon_as_any_other() -> None:
    clock = HandClock()
    with stepped_agent(reread=NEVER, clock=clock) as world:
        world.api.fail("GET", [Failure(500)] * 3)
        for _ in range(4):
            clock.seconds += world.agent.step()
        assert world.agent.failure is None
        world.api.fail("PATCH", [Failure(500)])
        world.imds.announce(event(VM, event_id="A"))
        world.step()
        assert world.agent.failure is not None
        clock.seconds += 1
        world.step()

        assert world.api.published_ids() == ["A"]


def test_the_agent_is_not_ready_before_the_first_good_answer(imds: FakeImds, start_agent: StartAgent) -> None:
    asked = threading.Event()
    imds.script(Answer(500), Answer(500, once=asked))
    agent = start_agent()

    agent.wait_for_line("IMDS gives no good answer")
    assert agent.readiness() == (503, "IMDS answered 500 Internal Server Error")
    asked.set()
    agent.wait_until_ready()


def test_only_a_loop_that_hangs_ends_liveness() -> None:
    health = Health()

    assert health.why_stuck(1e6) == ""
    health.stepped_at = 100.0
    assert health.why_stuck(100.0 + STUCK) == ""
    assert "no step has ended for 901 s" in health.why_stuck(101.0 + STUCK)


def test_a_step_that_fails_is_a_step() -> None:
    health, stop = Health(), threading.Event()

    def step() -> float:
        stop.set()
        health.stepped_at = None
        raise RuntimeError("no")

    run(step, health, stop)

    assert health.stepped_at is not None


def test_silence_of_imds_ends_readiness_and_one_answer_brings_it_back() -> None:
    health = Health()
    health.api_problem = ""
    assert health.why_not(0) == "IMDS has not answered yet"

    health.answered_at, health.imds_says = 100.0, ""
    assert health.why_not(100 + SILENCE) == ""
    health.imds_says = "IMDS answered 500"
    assert "IMDS answered 500" in health.why_not(101 + SILENCE)
    health.answered_at = 101 + SILENCE
    assert health.why_not(101 + SILENCE) == ""


HOSTILE = [
    pytest.param({"EventId": "\ud800"}, id="a lone surrogate"),
    pytest.param({"DurationInSeconds": 10**400}, id="a duration of 400 digits"),
    pytest.param({"DurationInSeconds": 1e308}, id="a duration beyond all dates"),
    pytest.param({"NotBefore": "Fri, 31 Dec 9999 23:59:59 GMT"}, id="year 9999"),
    pytest.param({"NotBefore": "0000-00-00T00:00:00Z"}, id="year 0"),
    pytest.param({"Resources": {"a": [VM]}}, id="resources that are no list"),
    pytest.param({"Resources": [VM, None, 7, ["\ud800"]]}, id="resources that are no names"),
    pytest.param({"EventType": ["Reboot"], "EventStatus": {}, "Description": 1}, id="no texts"),
    pytest.param({"Description": "\x1b[2J" * 10_000}, id="a long description of terminal codes"),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_whatever_an_event_contains_the_agent_goes_on(hostile: dict[str, object]) -> None:
    with stepped_agent(reread=NEVER, clock=HandClock()) as world:
        world.imds.announce({**event(VM, event_id="H"), **hostile}, event(VM, event_id="A"))
        world.step(3)
        world.imds.announce(event(VM, event_id="B"))
        world.step()

        assert world.api.published_ids() == ["B"]
        assert world.unready == ""


def test_an_unexpected_error_of_a_step_ends_nothing_and_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    health, stop, shown = Health(), threading.Event(), []
    pauses: list[float | None] = []
    monkeypatch.setattr(stop, "wait", pauses.append)
    errors: list[Exception] = [
        OverflowError("\ud800 out of range"),
        OverflowError("\ud800 out of range"),
        KeyError(),
    ]

    def step() -> float:
        shown.append(health.why_not(0))
        if errors:
            raise errors.pop(0)
        if len(shown) == 5:
            stop.set()
        return float("inf")

    run(step, health, stop)

    assert [text.partition("Error")[0] for text in shown[1:4]] == [
        "the last step failed: Overflow",
        "the last step failed: Overflow",
        "the last step failed: Key",
    ]
    assert "step" not in shown[4]
    assert pauses == [1, 2, 4, LONGEST_WAIT, LONGEST_WAIT]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["because"].partition(":")[0] for line in lines] == ["OverflowError", "KeyError"]
    assert "in step" in lines[0]["traceback"]


def test_after_a_step_that_went_well_the_pause_after_an_error_is_short_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop = threading.Event()
    pauses: list[float | None] = []
    monkeypatch.setattr(stop, "wait", pauses.append)
    goes_well = [False, False, True, False, True]

    def step() -> float:
        if goes_well.pop(0):
            return 5.0
        if len(goes_well) == 1:
            stop.set()
        raise KeyError

    run(step, Health(), stop)

    assert pauses == [1, 2, 5, 1]


def test_an_exhausted_memory_ends_the_agent() -> None:
    def step() -> float:
        raise MemoryError

    with pytest.raises(MemoryError):
        run(step, Health(), threading.Event())


@pytest.mark.parametrize("mood", [Answer(), Answer(delay=60)], ids=["at rest", "while IMDS keeps it waiting"])
def test_sigterm_ends_it_whatever_it_waits_for(imds: FakeImds, start_agent: StartAgent, mood: Answer) -> None:
    imds.script(mood)
    agent = start_agent("--interval", "60")
    imds.wait_until_script_is_over()

    agent.process.send_signal(signal.SIGTERM)

    # Its own pause, and IMDS's, is a minute.
    assert agent.process.wait(30) == 0
    assert agent.errors.read_text(encoding="utf-8") == ""


def test_once_publishes_and_ends(imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent) -> None:
    imds.announce(event(VM, event_id="A"))

    assert start_agent("--once").process.wait(20) == 0
    assert api.published_ids() == ["A"]


@pytest.mark.parametrize(
    ("failing", "code"), [("imds", 1), ("api", 3)], ids=["IMDS fails: 1", "the API server fails: 3"]
)
def test_once_says_by_its_exit_code_what_failed(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent, failing: str, code: int
) -> None:
    if failing == "imds":
        imds.script(Answer(500))
    else:
        api.fail("GET", [Failure(500)])

    assert start_agent("--once").process.wait(20) == code


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--node", "a"], "KUBERNETES_SERVICE_HOST"),
        ([], "NODE_NAME"),
        (["--node", "a", "--server", "http://127.0.0.1:9"], "--token-file"),
        (["--node", "a", "--server", "127.0.0.1", "--token-file", "t"], "not the URL of an API server"),
        (["--node", "a", "--imds-address", "127.0.0.1"], "not the address of an IMDS"),
        (["--node", "a", "--interval", "0"], "--interval"),
        (["--node", "a", "--listen", "x"], "--listen"),
    ],
)
def test_a_wrong_command_line_is_reported_and_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    for name in SERVICE:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_port_that_is_taken_is_reported(start_agent: StartAgent, api: FakeNodeApi) -> None:
    agent = start_agent("--listen", api.address.removeprefix("http://"))

    assert agent.process.wait(20) == 1
    assert agent.lines("cannot listen")


def test_pauses_grow_while_imds_fails_and_are_short_again_after_an_answer() -> None:
    with stepped_agent(reread=NEVER, clock=HandClock(), interval=1.0) as world:
        world.imds.script(*[Answer(500)] * 5)
        growing = [world.agent.step() for _ in range(5)]
        answered = world.agent.step()
        world.imds.script(Answer(500))

        assert growing == [1, 2, 4, 8, LONGEST_IMDS_PAUSE]
        assert (answered, world.agent.step()) == (1, 1)
