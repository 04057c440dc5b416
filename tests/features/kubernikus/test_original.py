"""The file kubernikus.yaml of maintenance-controller: read as it is, and what each line means."""

from __future__ import annotations

import pytest
import yaml

from reconciler.features.kubernikus.original import KUBERNIKUS_YAML
from reconciler.features.kubernikus.settings import CONTROLLER
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Mode, Settings
from reconciler.settings.warnings import warnings
from tests.support.builders import NOW

FILE = """\
intervals:
  requeue: 30s
  podDeletion:
    period: 20s
    timeout: 5m
  podEviction:
    period: 20s
    timeout: 5m
    force: false
cloudProviderSecret:
  name: cloud-config
  namespace: kube-system
"""
_KEY = "cloudProviderSecret:"


def read(text: str = FILE) -> Settings:
    return parse_settings(text, "kubernikus.yaml")


def test_the_file_is_read_as_it_is() -> None:
    settings = read()
    section = CONTROLLER.of(settings)

    assert (settings.mode, settings.keys.prefix) == (Mode.ENFORCE, "cloud.sap")
    assert section.enabled
    assert section.cloud_provider_secret is not None
    assert section.cloud_provider_secret.name == "cloud-config"
    assert section.cloud_provider_secret.namespace == "kube-system"


def test_each_line_has_a_meaning_and_the_block_says_the_same() -> None:
    origin = read().origin

    lines = [line.split(": ", 1)[0] for line in origin.meanings]
    assert lines == [f"kubernikus.yaml:{number}" for number in (2, 4, 5, 7, 8, 9, 11, 12)]
    assert "kubernikus.yaml:11: cloudProviderSecret.name is kubernikus.cloudProviderSecret.name" in (
        origin.meanings
    )
    block = CONTROLLER.of(parse_settings(origin.block, "ours.yaml"))
    assert block == CONTROLLER.of(read())


@pytest.mark.parametrize("secret", ["", "{name: '', namespace: ''}", "{name: a}"])
def test_without_a_whole_secret_the_file_has_the_credentials(secret: str) -> None:
    section = CONTROLLER.of(read(f"{FILE.partition(_KEY)[0]}{_KEY} {secret}"))

    assert section.enabled
    assert section.cloud_provider_secret is None
    assert section.credentials_file == "provider/cloudprovider.conf"


def test_a_key_that_nobody_knows_is_told() -> None:
    (said,) = [line for line in read(f"{FILE}nonsense: 1\n").origin.meanings if "nonsense" in line]

    assert "has no effect" in said


@pytest.mark.parametrize("key", ["vCenters: {}", "profiles: []", "alarms: []"])
def test_another_file_of_that_program_is_not_this_one(key: str) -> None:
    assert not KUBERNIKUS_YAML.is_one({**yaml.safe_load(FILE), **yaml.safe_load(key)})
    assert KUBERNIKUS_YAML.is_one(yaml.safe_load(FILE))


def test_it_is_no_reason_for_a_warning_that_nothing_is_seen() -> None:
    assert [str(warned) for warned in warnings(read(), NOW)] == []
