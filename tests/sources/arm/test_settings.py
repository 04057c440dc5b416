"""The keys of sources.arm: what is refused, and what each default is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.errors import SettingsError
from reconciler.settings.load import parse_settings
from reconciler.sources.arm.source import SECTION as ARM
from reconciler.sources.arm.source import AzureCloud


def test_arm_is_off_and_starts_nothing_by_default() -> None:
    source = ARM.of(parse_settings("", "maintenance.yaml"))

    assert (source.enabled, source.self_service, source.cloud) == (False, False, AzureCloud.PUBLIC)
    assert (source.every, source.ahead) == (timedelta(minutes=15), None)


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("{enabled: true, every: 59s}", "sources.arm.every", "shorter than 1m"),
        ("{selfService: true}", "sources.arm.selfService", "sources.arm.enabled is false"),
        ("{enabled: true, cloud: Germany}", "sources.arm.cloud", "Germany"),
        ("{enabled: true, endpoint: x}", "sources.arm.endpoint", ""),
    ],
)
def test_what_can_not_be_is_refused(text: str, key: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_settings(f"sources: {{arm: {text}}}", "maintenance.yaml")

    (mistake,) = raised.value.mistakes
    assert key in mistake
    assert said in mistake
