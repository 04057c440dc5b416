"""Law 12: an event is acknowledged only when all of its nodes are drained; otherwise never.

No version drains on the agent's word yet, so 'otherwise never' is all there is of it: whatever IMDS tells
of, and whatever is published, the only program that could start an event early does not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.agent import Agent, Arguments, Health
from reconciler.clients.own_node import Access
from tests.agent.fake_node_api import KEY, NODE, VM, FakeNodeApi
from tests.fakes.imds import Event, FakeImds, event, started

OTHER = "aks-np-12345678-vmss_10"

events = st.lists(
    st.builds(
        event,
        st.sampled_from([VM, OTHER, [VM, OTHER]]),
        st.sampled_from(["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]),
        event_id=st.uuids().map(str),
        source=st.sampled_from(["Platform", "User"]),
    ).flatmap(lambda one: st.sampled_from([one, started(one)])),
    max_size=3,
)


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[FakeImds, FakeNodeApi, Agent]]:
    """One agent between an IMDS and a Node that do as they are told."""
    with FakeImds() as imds, FakeNodeApi() as api, tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text("token\n", encoding="utf-8")
        arguments = Arguments(
            access=Access(api.url, token, None),
            node=NODE,
            imds_address=imds.address,
            interval=0.0,
            annotation=KEY,
            listen=None,
            reread=300.0,
            once=False,
        )
        yield imds, api, Agent(arguments, Health())


@settings(max_examples=60)
@given(st.lists(events, min_size=1, max_size=3))
def test_over_any_days_at_imds_no_event_is_ever_started_by_us(
    world: tuple[FakeImds, FakeNodeApi, Agent], days: list[list[Event]]
) -> None:
    imds, api, agent = world
    for told in days:
        imds.tell(*told)
        agent.step()
        published = api.published_ids()
        assert set(published or ()) == {one["EventId"] for one in told if VM in one["Resources"]}

    assert imds.acknowledged == []
    assert "POST" not in imds.requests
    assert imds.violations == []
