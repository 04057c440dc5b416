"""The annotation `maintenance-data`: the form of maintenance-controller, both versions, and its limits."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.workflows.data import (
    DataUnreadable,
    ProfileData,
    WorkflowData,
    from_annotation,
    to_annotation,
)
from reconciler.model import limits
from reconciler.model.record import State

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MOMENTS = st.integers(1, 3_000_000_000).map(lambda seconds: limits.EARLIEST + timedelta(seconds=seconds))
PROFILES = st.builds(ProfileData, MOMENTS, st.sampled_from(State), st.sampled_from(State))
NAMES = st.text("abcdefgh-._", min_size=1, max_size=20)


def test_the_text_is_what_maintenance_controller_writes() -> None:
    data = WorkflowData({"p": ProfileData(NOON, State.REQUIRED, State.OPERATIONAL)}, {"slack": NOON})

    assert to_annotation(data) == (
        '{"Profiles":{"p":{"Transition":"2026-11-21T12:00:00Z","Current":"maintenance-required",'
        '"Previous":"operational"}},"Notifications":{"slack":"2026-11-21T12:00:00Z"}}'
    )


@given(st.dictionaries(NAMES, PROFILES, max_size=5), st.dictionaries(NAMES, MOMENTS, max_size=5))
def test_what_is_written_is_read_again(
    profiles: dict[str, ProfileData], notifications: dict[str, datetime]
) -> None:
    data = WorkflowData(profiles, notifications)

    assert from_annotation(to_annotation(data)) == data


def test_times_are_read_as_go_writes_them() -> None:
    text = json.dumps(
        {
            "Profiles": {
                "p": {
                    "Transition": "2026-11-21T13:00:00.123456789+01:00",
                    "Current": "operational",
                    "Previous": "operational",
                }
            },
            "Notifications": {"never": "0001-01-01T00:00:00Z"},
        }
    )
    found = from_annotation(text)

    assert found.profiles["p"].transition == NOON.replace(microsecond=123456)
    assert '"Notifications":{"never":"0001-01-01T00:00:00Z"}' in to_annotation(found)


def test_the_older_form_is_read() -> None:
    text = json.dumps(
        {
            "LastTransition": "2026-11-21T12:00:00Z",
            "LastNotificationTimes": {"slack": "2026-11-21T12:00:00Z"},
            "ProfileStates": {"p": "in-maintenance", "q": "operational"},
            "PreviousStates": {"p": "maintenance-required"},
        }
    )

    assert from_annotation(text) == WorkflowData(
        {
            "p": ProfileData(NOON, State.IN_MAINTENANCE, State.REQUIRED),
            "q": ProfileData(NOON, State.OPERATIONAL, State.OPERATIONAL),
        },
        {"slack": NOON},
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("{", "it can't be read"),
        ("[]", "it is not a JSON object"),
        ('{"Profiles":{},"More":1}', "it has the unknown field 'More'"),
        ('{"Profiles":{"p":{"Current":"operational","Since":"x"}}}', "it has the unknown field 'Since'"),
        ('{"Profiles":{"p":{"Current":"gone"}}}', "'gone' is not a valid State"),
        ('{"Profiles":{"p":{"Current":"operational","Transition":3}}}', "3 is not a time"),
        ('{"Profiles":{"p":{"Current":"operational","Transition":"1999-01-01T00:00:00Z"}}}', "too far away"),
        ('{"Profiles":{"p":[]}}', "list is not a JSON object"),
        (json.dumps({"Profiles": {str(n): {"Current": "operational"} for n in range(101)}}), "101 entries"),
        (f'{{"Notifications":{{"{"x" * limits.ANNOTATION}":""}}}}', "longer than"),
    ],
)
def test_what_is_not_its_data_is_refused(text: str, because: str) -> None:
    with pytest.raises(DataUnreadable, match=because):
        from_annotation(text)
