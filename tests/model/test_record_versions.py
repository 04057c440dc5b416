"""Records of version 1, as the program before this one wrote them, are read as version 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.model.record import (
    Claim,
    ClaimedCordon,
    ClaimedDrain,
    ClaimKind,
    Cordon,
    DrainRecord,
    Record,
    State,
    from_annotation,
    to_annotation,
)
from tests.support.builders import NOW, minutes

CASES = Path(__file__).parents[1] / "cases" / "record_v1.json"
OLD: dict[str, object] = json.loads(CASES.read_text(encoding="utf-8"))
SINCE = NOW - minutes(10)
DEFAULT = (Claim(ClaimKind.PROFILE, "default"),)
ANN = (Claim(ClaimKind.PERSON, "ann@laptop"),)


def read(name: str) -> Record:
    """The record of that name, read."""
    found = from_annotation(json.dumps(OLD[name]), "uid-a")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "state", "cordon", "drain"),
    [
        ("waiting", State.REQUIRED, None, None),
        ("half drained", State.IN_MAINTENANCE, Cordon.OURS, DrainRecord(SINCE)),
        (
            "drained",
            State.IN_MAINTENANCE,
            Cordon.OURS,
            DrainRecord(SINCE, 2, NOW - minutes(5)),
        ),
        ("foreign", State.IN_MAINTENANCE, Cordon.FOREIGN, DrainRecord(SINCE)),
        ("adopted, not drained", State.IN_MAINTENANCE, Cordon.ADOPTED_MECHANIC, None),
        ("dismissed", State.OPERATIONAL, None, None),
    ],
)
def test_the_case_of_version_1_is_the_default_profiles(
    name: str, state: State, cordon: Cordon | None, drain: DrainRecord | None
) -> None:
    record = read(name)
    case = record.case("default")

    assert (case.state, case.since) == (state, SINCE if state is not State.OPERATIONAL else None)
    assert record.cordon == (ClaimedCordon(cordon, SINCE, DEFAULT) if cordon else None)
    assert record.drain == (ClaimedDrain(drain, DEFAULT) if drain else None)
    assert record.worst is state


def test_every_part_of_a_case_of_version_1_is_read() -> None:
    case = read("drained").case("default")

    assert [event.ids for event in case.events] == [("A1",)]
    assert [event.kind for event in case.dismissed] == ["Freeze"]
    assert case.quiet_since == NOW - minutes(1)
    assert case.self_service is not None
    assert case.self_service.boot_id == "boot-1"
    assert case.acknowledged == ("A1",)
    assert case.replacement is not None
    assert (case.replacement.wanted, case.replacement.removals) == (4, 1)


@pytest.mark.parametrize(
    ("name", "whose", "left"),
    [
        ("by hand", Cordon.OURS, State.OPERATIONAL),
        ("by hand, on a foreign cordon", Cordon.FOREIGN, State.OPERATIONAL),
        ("by hand, over a waiting case", Cordon.OURS, State.REQUIRED),
    ],
)
def test_a_drain_by_hand_of_version_1_is_a_persons_claim(name: str, whose: Cordon, left: State) -> None:
    record = read(name)

    assert record.claimed_by == "ann@laptop"
    assert record.worst is State.IN_MAINTENANCE
    assert record.cordon == ClaimedCordon(whose, SINCE, ANN)
    assert record.drain == ClaimedDrain(DrainRecord(SINCE), ANN)
    assert record.case("default").state is left
    assert record.case("default").drain is None


@pytest.mark.parametrize("name", OLD)
def test_what_was_read_of_version_1_is_written_as_version_2_and_means_the_same(name: str) -> None:
    text = to_annotation(read(name))

    assert json.loads(text)["version"] == 2
    assert from_annotation(text, "uid-a") == read(name)
