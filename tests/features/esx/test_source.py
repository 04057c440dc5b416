"""The hosts that vCenter reports: maintenance, alarms, and what is unknown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.features.esx.settings import SECTION
from reconciler.features.esx.source import HOST, HostState, VCenterHosts
from reconciler.model.errors import SettingsError
from reconciler.model.event import Answer, Kind
from reconciler.model.node import ZONE_LABEL
from reconciler.model.polling import Listing, Memory
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.passes.plugin import SourceContext
from reconciler.run import PARTS
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import NOW, minutes

VCENTER = VCenterHosts()
SERVER = "url: 'https://vc.example.com', username: reader, password: '${VC_PASSWORD}'"


def chosen(more: str = "", server: str = SERVER) -> Settings:
    text = f"mode: Enforce\nsources: {{esx: {{enabled: true, vcenters: [{{{server}}}]{more}}}}}"
    return parse_settings(f"{text}\nuncordon: {{settle: 0s}}\nbudget: {{maxUnavailable: 100%}}", "f")


NODE = builders.node(labels={HOST: "ESX-1", ZONE_LABEL: "eu-de-1a"})


def memory(*states: HostState, seen: bool = True) -> Memory[str, HostState]:
    listing: Listing[str, HostState] = Listing(
        "eu-de-1a", tuple(("esx-1", one) for one in states), frozenset({"esx-1"} if seen else ())
    )
    return VCENTER.remembered(Memory(), [listing], [NODE], minutes(5), NOW)


def reading(known: Memory[str, HostState], more: str = "") -> Any:
    (found,) = VCENTER.read(NODE, SourceContext(chosen(more), NOW, memories={"vcenter": known}))
    return found


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        pytest.param(
            HostState(maintenance=True, version="8.0.3"),
            Kind.REBOOT,
            "the ESX host esx-1 (8.0.3) is in maintenance",
            id="maintenance",
        ),
        pytest.param(
            HostState(entering=True),
            Kind.REBOOT,
            "the ESX host esx-1 enters maintenance mode",
            id="it waits for its VMs to go",
        ),
        pytest.param(
            HostState(maintenance=True, alarms=("Host memory usage",)),
            Kind.REDEPLOY,
            "the ESX host esx-1 has an alarm: Host memory usage",
            id="an alarm is reported first",
        ),
    ],
)
def test_maintenance_and_alarms_are_events(state: HostState, kind: Kind, words: str) -> None:
    found = reading(memory(state))

    assert found.answer is Answer.EVENT
    assert [(one.kind, one.description, one.source) for one in found.signals] == [(kind, words, "vcenter")]


def test_the_settings_choose_the_kinds() -> None:
    more = ", maintenance: LiveMigration, alarm: Preempt"
    states = (HostState(maintenance=True), HostState(alarms=("x",)))

    assert [reading(memory(one), more).signals[0].kind for one in states] == [
        Kind.LIVE_MIGRATION,
        Kind.PREEMPT,
    ]


def test_a_host_without_either_has_no_event_and_one_that_is_missing_is_unknown() -> None:
    assert reading(memory()).answer is Answer.NO_EVENT
    assert reading(memory(seen=False)).answer is Answer.UNKNOWN
    assert reading(Memory()).answer is Answer.UNKNOWN


def test_a_node_without_the_label_of_its_host_has_no_reading() -> None:
    node = builders.node(labels={ZONE_LABEL: "eu-de-1a"})

    assert VCENTER.read(node, SourceContext(chosen(), NOW, memories={"vcenter": memory()})) == ()


def test_a_memory_survives_the_ledger() -> None:
    known = memory(HostState(maintenance=True, entering=True, alarms=("a", "b"), version="8.0.3"))

    assert VCENTER.kept.of(VCENTER.kept.put(Ledger(), known)) == known


def test_either_the_label_or_vcenter_is_read() -> None:
    label = builders.settings("sources: {esx: {enabled: true}}")
    names = [
        {one.name for one in PARTS.sources.switched_on(each)} & {"esx", "vcenter"}
        for each in (label, chosen(), builders.settings())
    ]

    assert names == [{"esx"}, {"vcenter"}, set()]


@pytest.mark.parametrize(
    ("server", "said"),
    [
        pytest.param(
            SERVER.replace("https://vc.example.com", "vc.example.com"), "is not the address", id="no URL"
        ),
        pytest.param(SERVER.replace("https://", "https://user:secret@"), "is not the address", id="a user"),
        pytest.param(SERVER.replace(".com", ".com/sdk"), "is not the address", id="a path"),
        pytest.param(SERVER.replace("https:", "http:"), "would send the password unencrypted", id="http"),
        pytest.param(SERVER.replace("vc.example.com", "169.254.169.254"), "is a link-local", id="metadata"),
        pytest.param(
            SERVER.replace("vc.example.com", "16$AZ.254.169.254"), r"has \$AZ in an address", id="of numbers"
        ),
        pytest.param(SERVER.replace(".com", ".com:844$AZ"), "is not the address", id="the zone in the port"),
        pytest.param(
            SERVER.replace("https://vc.example.com", "http://localhos$AZ"), "would send", id="nearly local"
        ),
    ],
)
def test_an_address_that_is_no_vcenter_is_refused(server: str, said: str) -> None:
    with pytest.raises(SettingsError, match=rf"vcenters\[0\].url: {said}") as error:
        chosen(server=server)
    assert "secret" not in str(error.value)


def test_queries_are_at_least_ten_seconds_apart() -> None:
    assert VCENTER.section(chosen(", every: 10s")).every == timedelta(seconds=10)
    with pytest.raises(SettingsError, match=r"sources\.esx\.every: is shorter than 10s"):
        chosen(", every: 9s")


def test_a_query_that_failed_is_repeated_a_minute_later_at_the_earliest() -> None:
    def again(problem: str) -> timedelta:
        listing: Listing[str, HostState] = Listing("eu-de-1a", problem=problem)
        known = VCENTER.remembered(Memory(), [listing], [NODE], timedelta(seconds=10), NOW)
        return known.answers[0].again - NOW

    assert again("") == timedelta(seconds=10)
    assert again("a wrong password") == minutes(1)


def test_insecure_is_warned_of_and_leaves_no_use_for_an_authority() -> None:
    (said,) = [str(warning) for warning in SECTION.warnings(chosen(server=f"{SERVER}, insecure: true"), NOW)]
    assert said.startswith("sources.esx.vcenters[0].insecure: is true: whoever is on the way to it can read")
    assert not list(SECTION.warnings(chosen(), NOW))
    with pytest.raises(SettingsError, match=r"vcenters\[0\].insecure: leaves caFile without an effect"):
        chosen(server=f"{SERVER}, insecure: true, caFile: /ca.crt")


def test_no_report_of_the_settings_shows_the_password() -> None:
    found = chosen(server=SERVER.replace("${VC_PASSWORD}", "hunter2"))

    assert "hunter2" not in repr(found)


def test_hosts_are_compared_without_case() -> None:
    assert VCENTER.locate(NODE) == ("eu-de-1a", "esx-1")
    assert VCENTER.locate(replace(NODE, labels={HOST: "esx-1"})) == ("", "esx-1")
