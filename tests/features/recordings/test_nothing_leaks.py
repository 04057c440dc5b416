"""Nothing that identifies somebody is in a recording, wherever it was and however it is written."""

from __future__ import annotations

import ipaddress
import json
import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.recordings.standins import StandIns
from reconciler.features.recordings.words import public_words
from reconciler.model.case_outcome import CaseResult
from reconciler.model.node import Taint
from reconciler.model.pod import Owner
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.run import PARTS
from reconciler.simulation.workloads import BudgetSpec
from tests.features.recordings.recording import recording_of
from tests.support import builders, strategies
from tests.support.builders import NOW, PREFIX
from tests.support.worlds import world_of

# Words that no file has by chance.
_words = st.from_regex(r"qx[bcdfghjk]{5,9}", fullmatch=True)
_guids = st.uuids(version=4).map(str)
_ipv4 = st.builds(lambda number: str(ipaddress.IPv4Address(number)), st.integers(2**24, 2**32 - 1))
_ipv6 = st.builds(
    lambda number: str(ipaddress.IPv6Address(number)), st.integers(0x2001 << 112, (0x2002 << 112) - 1)
)
_names = st.one_of(
    _words,
    st.builds(lambda one, two: f"{one}-{two}", _words, _words),
    st.builds(lambda one, number: f"{one}-vmss{number:06d}", _words, st.integers(0, 999)),
    _guids,
)
_texts = st.one_of(
    _names,
    _words.map(str.upper),
    _words.map(str.title),
    _ipv4,
    _ipv6,
    st.builds(lambda one, two: f"{one}@{two}.example.com", _words, _words),
    st.builds(lambda one, two: f"https://{one}.example.com/{two}?key={one}#{two}", _words, _words),
    st.builds(lambda one: f"é{one}ü", _words),
    st.builds(lambda one: f"a\\u00e9{one}\n\t{one}", _words),
    st.builds(
        lambda one: f'"{one}" ({one}) <{one}> [{one}]: {{{one}}} `{one}` ${{{one}}} %{one}% *{one}*', _words
    ),
    st.builds(lambda one: json.dumps({one: [json.dumps({"deep": one})]}), _words),
    st.builds(lambda one, number: f"{one}_{number}.{one}+{one}~{one}", _words, st.integers(0, 10**9)),
    st.integers(10**9, 10**15).map(str),
)


def secrets_of(text: str) -> list[str]:
    """The parts of a text that must not come out."""
    try:
        return [str(ipaddress.ip_address(text))]
    except ValueError:
        pass
    try:
        return [str(uuid.UUID(text))]
    except ValueError:
        pass
    if text.isdigit():
        return [text]
    return re.findall(r"qx[bcdfghjk]{5,9}", text.casefold())


@given(data=st.data())
def test_no_name_id_address_or_text_comes_out(data: st.DataObject) -> None:
    used: list[str] = []

    def name() -> str:
        used.append(data.draw(_names))
        return used[-1]

    def text() -> str:
        used.append(data.draw(_texts))
        return used[-1]

    scale_set, pool, zone, team, vm = name(), name(), name(), name(), name()
    event = {
        "EventId": name(),
        "EventType": data.draw(st.sampled_from(("Reboot", text()))),
        "EventStatus": "Scheduled",
        "NotBefore": data.draw(st.sampled_from((strategies.rfc1123(NOW), text()))),
        "Description": f"Host server is undergoing maintenance. {text()}",
        "Resources": data.draw(st.sampled_from(([vm], [f"{scale_set}_3"], vm))),
        text(): {text(): [text()]},
    }
    node = replace(
        builders.node(
            name(),
            uid=data.draw(_guids),
            pool=pool,
            zone=zone,
            labels={team: team, f"{name()}.example.com/{name()}": name()},
            annotations={
                builders.IMDS: data.draw(
                    st.sampled_from(
                        (json.dumps({"version": 1, "vm": f"{scale_set}_3", "events": [event]}), text())
                    )
                ),
                builders.REQUEST: data.draw(
                    st.sampled_from((json.dumps({"kind": "Reboot", "id": text(), "reason": text()}), text()))
                ),
                f"{PREFIX}/hold": json.dumps({"by": text(), "reason": text()}),
                f"{PREFIX}/pre-drain.{name()}": text(),
                builders.RECORD: text(),
            },
            conditions=(
                builders.condition(
                    "VMEventScheduled", message=f"Reboot Scheduled: {text()} EventId: {text()}"
                ),
            ),
        ),
        provider_id=f"azure:///subscriptions/{data.draw(_guids)}/resourceGroups/{name()}/providers/"
        f"Microsoft.Compute/virtualMachineScaleSets/{scale_set}/virtualMachines/3",
        boot_id=data.draw(_guids),
    )
    node = replace(node, taints=(Taint(f"example.com/{name()}", text(), "NoSchedule"),))
    other = replace(builders.node(name(), pool=pool), unschedulable=True)
    pod = replace(
        builders.pod(name(), node.name, namespace=name()),
        labels={"app": name(), name(): text()},
        annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": text()},
        owner=Owner("ReplicaSet", name(), uid=data.draw(_guids)),
        unplaced=text(),
    )
    used += [node.uid, node.provider_id.split("/")[4], node.boot_id, pod.uid.partition("-")[2]]
    world = world_of([node, other], [pod])
    world.cluster.add_budget(
        BudgetSpec(pod.namespace, name(), LabelSelector.of({"app": pod.labels["app"]}), max_unavailable=0)
    )
    secret = data.draw(_words)
    used.append(secret)
    webhook = {"url": f"https://{secret}.example.com/1234", "headers": {"X-Token": secret}}
    policy = json.dumps(
        {
            "mode": "Enforce",
            "nodeSelector": {team: team},
            "windows": [{"name": name(), "start": "22:00", "end": "05:00"}],
            "notAllowed": [{"name": name(), "start": "2026-11-26", "end": "2026-11-28", "reason": text()}],
            "hooks": {"preDrain": [{"name": secret, "webhook": webhook}]},
            "notify": [{"name": secret, "slack": {"webhook": f"https://example.com/{secret}/4321"}}],
        }
    )

    found = recording_of(world, node.name, policy)

    written = found.text.casefold()
    leaked = {part for each in used for part in secrets_of(each) if part in written}
    assert not leaked
    assert "4321" not in written
    assert found.replayed == found.read.decision
    # Whoever sends it can look up each of them.
    shown = {part for hidden in found.hidden for part in secrets_of(hidden.word)}
    assert set(secrets_of(node.name)) <= shown


def test_the_same_word_has_the_same_stand_in_and_others_have_others() -> None:
    document = {"a": "Acme acme ACME acme-2", "b": ["x/acme", {"acme": "acme_7"}]}

    made = StandIns(document, {"a", "b", "x"}, {}).of(document)

    assert made == {
        "a": "nAme-s001 name-s001 Name-s001 name-s002",
        "b": ["x/name-s001", {"name-s001": "name-s001_7"}],
    }
    spelt = {word.casefold() for word in made["a"].split()[:3]}
    assert spelt == {"name-s001"}


def test_the_stand_ins_have_the_order_of_the_words() -> None:
    words = [f"node{letter}" for letter in "caebd"]

    made = StandIns(words, (), dict.fromkeys(words, "nodes")).of(words)

    assert [word for _, word in sorted(zip(words, made, strict=True))] == sorted(made)


def test_what_is_public_stays() -> None:
    texts = [
        "Redeploy Scheduled: Sat, 21 Nov 2026 13:00:00 GMT. DurationInSeconds: -1. Host server",
        "2026-11-21T13:00:00.123Z 2026-11-21 22:00 9am 4h30m 10% 512Mi v1.33.2 0 2 * * 6#1 1-5 Mon-Thu",
        "azure:///subscriptions",
    ]
    announced = ("redeploy", "scheduled", "sat", "nov", "gmt", "durationinseconds", "host", "server")
    public = (*announced, "azure", "subscriptions")

    assert StandIns(texts, public, {}).of(texts) == texts


def test_every_outcome_of_a_case_stays() -> None:
    """A decision has it, so a file with a stand-in for it would be decided in another way."""
    outcomes = {result.value for result in CaseResult}

    assert outcomes <= public_words(PARTS)


def test_a_large_number_keeps_its_size_alone() -> None:
    document = {"a": 4915112345678, "b": -600, "c": '{"a":4915112345678,"b":52.520008,"c":31536000}'}

    assert StandIns(document, "abc", {}).of(document) == {
        "a": 4000000000000,
        "b": -600,
        "c": '{"a":4000000000000,"b":52.52,"c":31536000}',
    }


@pytest.mark.parametrize("piece", ["_1", "pre-drain.", "a:", "[", '{"a":', "aws:///aa-", "ab-1"])
def test_a_text_of_many_like_pieces_is_replaced(piece: str) -> None:
    text = f"{piece * 5000}secret"

    (made,) = StandIns([text], (), {}).of([text])

    assert "secret" not in made
