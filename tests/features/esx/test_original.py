"""`esx.yaml` of maintenance-controller: the settings that say the same, and what each line means."""

from __future__ import annotations

from datetime import timedelta

import pytest
import yaml

from reconciler.features.esx.settings import INITIATED, LABEL, POWER, SECTION, VERSION
from reconciler.model.errors import SettingsError
from reconciler.settings.grants import grants_of
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Mode

FILE = """\
intervals:
  check: {jitter: 0.1, period: 4m}
  podDeletion: {period: 5s, timeout: 2m}
  vmShutdown: {period: 5s, timeout: 3m}
  podEviction: {period: 20s, timeout: 5m, force: true}
alarms:
- "Host memory usage"
vCenters:
  templateUrl: https://vc-$AZ.example.com
  insecure:
  credentials:
    a:
      username: user
      password: hidden
    b: {username: "${USER_B}", password: "${PASSWORD_B}"}
"""


def test_the_file_is_settings_that_act_on_esx_hosts_only() -> None:
    settings = parse_settings(FILE, "esx.yaml")

    assert (settings.mode, settings.keys.prefix) == (Mode.ENFORCE, "cloud.sap")
    assert POWER.of(settings).enabled
    assert POWER.of(settings).shutdown_timeout == timedelta(minutes=3)
    section = SECTION.of(settings)
    assert section.enabled
    assert section.reboot_ok
    assert section.every == timedelta(minutes=4)
    assert section.alarms == ("Host memory usage",)
    assert [(server.zone, server.url, server.insecure) for server in section.vcenters] == [
        ("a", "https://vc-$AZ.example.com", False),
        ("b", "https://vc-$AZ.example.com", False),
    ]
    assert [server.password.text for server in section.vcenters] == ["hidden", "${PASSWORD_B}"]


def test_every_line_is_explained_and_no_secret_is_shown() -> None:
    origin = parse_settings(FILE, "esx.yaml").origin

    assert "esx.yaml:2: intervals.check.period is sources.esx.every; at least 10s" in origin.meanings
    assert any("force has no effect" in line for line in origin.meanings)
    assert (
        "esx.yaml:13: vCenters.credentials.a.username is username of sources.esx.vcenters[0]"
        in origin.meanings
    )
    assert len(origin.meanings) == 16
    assert "hidden" not in "".join(origin.meanings) + origin.block


def test_the_block_says_the_same() -> None:
    theirs = parse_settings(FILE, "f")
    environment = {"VCENTER_A_USERNAME": "user", "VCENTER_A_PASSWORD": "hidden"}
    ours = parse_settings(theirs.origin.block, "f", environment)

    assert SECTION.of(ours).polled.servers[1] == SECTION.of(theirs).polled.servers[1]
    assert POWER.of(ours) == POWER.of(theirs)
    assert (ours.budget, ours.events) == (theirs.budget, theirs.events)
    assert (
        yaml.safe_load(theirs.origin.block)["sources"]["esx"]["vcenters"][0]["password"]
        == "${VCENTER_A_PASSWORD}"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param("period: 4m", "period: 4x", "esx.yaml:2:24: intervals.check.period: "),
        pytest.param(
            "  templateUrl: https://vc-$AZ.example.com\n", "", "esx.yaml:8:1: vCenters: has no templateUrl"
        ),
        pytest.param(
            "https://vc-$AZ.example.com", "vc", "esx.yaml:9:3: vCenters.templateUrl: is not the address"
        ),
        pytest.param("      password: hidden\n", "", "esx.yaml:12:5: vCenters.credentials.a"),
    ],
)
def test_a_mistake_has_its_place_in_the_file(old: str, new: str, said: str) -> None:
    assert old in FILE
    with pytest.raises(SettingsError) as raised:
        parse_settings(FILE.replace(old, new), "esx.yaml")

    assert said in str(raised.value)


def test_durations_of_go_and_an_address_without_encryption_are_read_as_there() -> None:
    text = FILE.replace("period: 4m", "period: 400ms").replace("timeout: 3m", "timeout: 1500ms")
    settings = parse_settings(text.replace("https://", "http://"), "esx.yaml")

    assert SECTION.of(settings).every == timedelta(seconds=10)
    assert POWER.of(settings).shutdown_timeout == timedelta(seconds=2)
    assert [server.insecure for server in SECTION.of(settings).vcenters] == [True, True]
    assert any("http sends the passwords unencrypted" in line for line in settings.origin.meanings)


def test_a_file_of_ours_is_never_taken_for_theirs() -> None:
    with pytest.raises(SettingsError, match="vCenters: unknown key"):
        parse_settings("mode: Enforce\nvCenters: {}\n", "f")


def test_an_unknown_key_is_said_to_have_no_effect() -> None:
    origin = parse_settings(f"{FILE}surprise: 1\n", "f").origin

    assert any(line.startswith("f:16: surprise has no effect") for line in origin.meanings)


def test_the_labels_and_the_annotation_need_a_grant() -> None:
    assert grants_of(parse_settings(FILE, "f")).keys == {
        "Labels": (LABEL, VERSION),
        "Annotations": (INITIATED,),
    }
    assert not grants_of(parse_settings("", "f")).any
