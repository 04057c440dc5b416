"""What a namespace is told of its pods: read as it was written, with a limit, and hostile."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.pods.coming import ComingPod
from reconciler.features.pods.moved import MovedPod
from reconciler.features.pods.published import LARGEST, Published, from_config_map, to_config_map
from reconciler.model.drains import Refused
from reconciler.model.explanation import Moves
from reconciler.model.values import replace
from tests.support.builders import NOW, minutes

ZONE = ZoneInfo("Europe/Berlin")
MOVED = MovedPod(NOW, "shop/web-1", "uid-1", "a", "uid-a", why="Reboot", refused=(Refused("PDB shop/web"),))
COMING = ComingPod("shop/web-2", "a", Moves.BLOCKED, "Deployment shop/web", None, "Reboot", "because", "who")
TOLD = Published(NOW + minutes(900), NOW, ZONE, (MOVED,), (COMING, replace(COMING, start=NOW)))


def test_it_is_read_as_it_was_written() -> None:
    assert from_config_map(to_config_map(TOLD), "shop") == TOLD


def test_above_the_limit_the_newest_and_the_next_pods_stay_and_it_says_what_is_missing() -> None:
    moved = tuple(replace(MOVED, at=NOW + timedelta(seconds=number)) for number in range(2000))
    coming = tuple(replace(COMING, pod=f"shop/web-{number}") for number in range(2000))
    data = to_config_map(replace(TOLD, moved=moved, coming=coming))
    read = from_config_map(data, "shop")

    assert max(map(len, data.values())) <= LARGEST
    assert 0 < len(read.moved) < 2000
    assert read.moved == moved[-len(read.moved) :]
    assert read.whole_from == read.moved[0].at
    assert read.coming == coming[: len(read.coming)]
    assert read.left_out == 2000 - len(read.coming)


def test_pods_of_other_namespaces_that_somebody_has_written_there_are_left_out() -> None:
    other = replace(TOLD, moved=(replace(MOVED, pod="team/etl"),), coming=(replace(COMING, pod="team/etl"),))
    read = from_config_map(to_config_map(other), "shop")

    assert (read.moved, read.coming) == ((), ())


@pytest.mark.parametrize(
    ("changed", "because"),
    [
        ({"moved": "{"}, "Expecting property name"),
        ({"moved": '{"pod": 7}'}, "pod"),
        ({"tonight": "[" * 60_000}, "nested too deep"),
        ({"tonight": "x" * (LARGEST + 1)}, f"more than {LARGEST} characters"),
        ({"until": "soon"}, "not a moment"),
        ({"leftOut": "-1"}, "is not a count"),
        ({"timeZone": "../../etc/passwd"}, "IANA"),
    ],
    ids=["no JSON", "another type", "deep", "long", "moment", "count", "zone"],
)
def test_what_somebody_else_has_written_there_is_refused(changed: dict[str, str], because: str) -> None:
    with pytest.raises(ValueError, match=because):
        from_config_map({**to_config_map(TOLD), **changed}, "shop")


def test_a_key_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="it has no key moved"):
        from_config_map({}, "shop")
