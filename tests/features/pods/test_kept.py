"""What the cluster keeps of moved pods: bounded, whole from a moment on, and read as hostile."""

from __future__ import annotations

import base64
import gzip
from datetime import timedelta
from uuid import UUID

import pytest

from reconciler.features.pods.kept import LARGEST, LARGEST_LINES, KeptPods, packed, unpacked
from reconciler.features.pods.moved import MovedPod
from tests.support.builders import NOW, minutes


def pod(number: int) -> MovedPod:
    """Return a pod that was moved so many seconds after NOW; its UID compresses as badly as a real one."""
    uid = str(UUID(int=pow(3, number + 500, 2**127)))
    return MovedPod(NOW + timedelta(seconds=number), f"shop/web-{number}", uid, "a", "uid-a", why="Reboot")


def zipped(text: bytes) -> str:
    return base64.b64encode(gzip.compress(text)).decode()


def test_pods_are_read_as_they_were_written() -> None:
    kept = KeptPods(NOW, tuple(map(pod, range(10))))

    assert unpacked(packed(kept)) == kept


def test_above_the_limit_the_oldest_are_left_out_and_the_rest_says_from_when_it_is_whole() -> None:
    every = tuple(map(pod, range(20_000)))
    data = packed(KeptPods(NOW, every))
    read = unpacked(data)

    assert LARGEST * 0.8 < len(data["lines"]) <= LARGEST
    assert read.pods == every[-len(read.pods) :]
    assert every[-len(read.pods) - 1].at < read.whole_from <= read.pods[0].at


def test_pods_of_two_processes_are_kept_once_and_not_beyond_their_time() -> None:
    before = KeptPods(NOW, (pod(0), pod(60)))
    kept = before.with_pods([pod(120), pod(60)], NOW + minutes(1))

    assert kept == KeptPods(NOW + minutes(1), (pod(60), pod(120)))


@pytest.mark.parametrize(
    ("data", "because"),
    [
        ({}, "it has no key lines"),
        ({"lines": "?"}, "its lines can't be read"),
        ({"lines": base64.b64encode(b"text").decode()}, "its lines can't be read"),
        ({"lines": zipped(b" " * (LARGEST_LINES + 1))}, f"its lines are more than {LARGEST_LINES} bytes"),
        ({"lines": zipped(b"[]"), "wholeFrom": "2026-11-21T12:00:00Z"}, "a line of it can't be read"),
        ({"lines": zipped(b""), "wholeFrom": "soon"}, "a line of it can't be read"),
    ],
    ids=["empty", "no base64", "no gzip", "a bomb", "no object", "no moment"],
)
def test_what_somebody_else_has_written_there_is_refused_in_words(data: dict[str, str], because: str) -> None:
    with pytest.raises(ValueError, match=because):
        unpacked(data)
