"""Pages that are requested before the one before is decoded: whatever happens to them, the list is whole."""

from __future__ import annotations

import threading

import pytest

from reconciler.kubernetes.connection import PODS
from reconciler.kubernetes.scale.pages import list_streamed
from reconciler.kubernetes.wire.formats import pod_format
from reconciler.model.errors import Rejected
from tests.support.fakes.threads import refused
from tests.support.shapes import field
from tests.support.stub import PROTOBUF, Answer, Asked, StubMaker, status


def _page(number: int, *, cut: bool = False, broken: bool = False) -> Answer:
    """Return one of four pages, each of one pod."""
    token = "" if number == 3 else str(number + 1)
    pod = b"\xff" if broken else field(1, field(1, f"p{number}"))
    listed = field(1, field(2, "7") + field(3, token)) + field(2, pod)
    body = b"k8s\x00" + field(1, field(2, "PodList")) + field(2, listed)
    return Answer(body, content_type=PROTOBUF, cut=cut)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("bad", ["refused", "cut"])
def test_a_page_that_fails_is_requested_again(stub: StubMaker, number: int, bad: str) -> None:
    asked_for: list[int] = []

    def answer(asked: Asked) -> Answer:
        page = int(asked.query.get("continue", "0"))
        asked_for.append(page)
        if page == number and asked_for.count(page) == 1:
            return status(503) if bad == "refused" else _page(page, cut=True)
        return _page(page)

    _, connection = stub(answer)

    assert [pod.name for pod in list_streamed(connection, PODS, pod_format()).items] == [
        "p0",
        "p1",
        "p2",
        "p3",
    ]
    assert asked_for.count(number) == 2
    _wait_for_threads()


def test_a_list_that_ends_in_an_error_leaves_no_request_behind(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        page = int(asked.query.get("continue", "0"))
        return _page(page, broken=page == 1)

    server, connection = stub(answer)

    with pytest.raises(Rejected):
        list_streamed(connection, PODS, pod_format())
    assert [asked.query.get("continue") for asked in server.asked] == [None, "1", "2"]
    _wait_for_threads()


def test_a_list_is_whole_where_no_thread_can_start(stub: StubMaker) -> None:
    _, connection = stub(lambda asked: _page(int(asked.query.get("continue", "0"))))

    with refused(lambda name: name == "next page"):
        assert [pod.name for pod in list_streamed(connection, PODS, pod_format()).items] == [
            "p0",
            "p1",
            "p2",
            "p3",
        ]


def _wait_for_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "next page":
            thread.join(30)
            assert not thread.is_alive()
