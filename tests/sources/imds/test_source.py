"""What the agents published, and when that is not to be trusted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from reconciler.model.event import Answer, Kind
from reconciler.model.snapshot import Agents
from reconciler.passes.plugin import SourceContext
from reconciler.sources.imds.source import PublishedEvents, read
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, PREFIX

EVENT = builders.published(
    {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Started", "NotBefore": ""}
)
INSTALLED = Agents(installed=True)


@pytest.mark.parametrize(
    ("text", "labels", "agents", "answer", "installed", "because"),
    [
        pytest.param(EVENT, {}, INSTALLED, Answer.EVENT, True, "", id="an event"),
        pytest.param(builders.published(), {}, INSTALLED, Answer.NO_EVENT, True, "", id="events: none"),
        pytest.param(None, {}, INSTALLED, Answer.NO_EVENT, True, "", id="nothing was ever published"),
        pytest.param(None, {}, Agents(), Answer.UNKNOWN, False, "no node agent is installed", id="no agent"),
        pytest.param(EVENT, {}, Agents(), Answer.EVENT, True, "", id="somebody runs it in another way"),
        pytest.param(
            EVENT,
            {},
            Agents(installed=True, not_ready=frozenset("a")),
            Answer.UNKNOWN,
            True,
            "its agent is not ready, so it may not reach IMDS or the API server",
            id="its pod is not ready",
        ),
        pytest.param(
            None,
            {},
            Agents(installed=True, covered=frozenset("b")),
            Answer.UNKNOWN,
            True,
            "the agent's DaemonSet has no pod on the node",
            id="its pod is missing",
        ),
        pytest.param(
            None,
            {},
            Agents(installed=True, covered=frozenset("a")),
            Answer.NO_EVENT,
            True,
            "",
            id="another node's pod is missing",
        ),
        pytest.param(
            None,
            {},
            Agents(problem="403"),
            Answer.UNKNOWN,
            True,
            "the state of the agents is unknown: 403",
            id="the DaemonSet can't be read",
        ),
        pytest.param(
            builders.published(),
            {},
            Agents(problem="403"),
            Answer.UNKNOWN,
            True,
            "the state of the agents is unknown: 403",
            id="no event was published and the DaemonSet can't be read",
        ),
        pytest.param(
            EVENT,
            {},
            Agents(problem="403"),
            Answer.EVENT,
            True,
            "",
            id="an event was published and the DaemonSet can't be read",
        ),
        pytest.param(
            None,
            {"kubernetes.io/os": "windows"},
            INSTALLED,
            Answer.UNKNOWN,
            False,
            "Windows nodes are not covered by the agent",
            id="windows",
        ),
    ],
)
def test_what_was_published_is_believed_while_the_agent_lives(
    text: str | None, labels: dict[str, str], agents: Agents, answer: Answer, installed: bool, because: str
) -> None:
    node = builders.node(labels=labels, annotations={IMDS: text} if text else {})
    given_answer = read(node, PREFIX, agents)

    assert (given_answer.answer, given_answer.installed, given_answer.because) == (answer, installed, because)
    assert [one.kind for one in given_answer.signals] == [Kind.REBOOT] * (answer is Answer.EVENT)
    assert bool(given_answer.abandoned) == (text is not None and agents == Agents())


@settings(deadline=None)
@given(strategies.garbage)
def test_an_annotation_that_can_not_be_read_is_unknown_and_says_why(text: str) -> None:
    answer = read(builders.node(annotations={IMDS: text}), PREFIX, INSTALLED)

    assert answer.answer is Answer.UNKNOWN
    assert answer.because


def test_a_node_that_aks_manages_itself_needs_no_agent() -> None:
    hosted = builders.node(labels={"kubernetes.azure.com/hostedvm": "true"})
    agents = Agents(installed=True, covered=frozenset())

    assert PublishedEvents().read(hosted, SourceContext(builders.settings(), NOW, agents)) == ()
