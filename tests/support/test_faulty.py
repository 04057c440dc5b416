"""The faults of requests are what they say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import pytest

from tests.support.fakes.faulty import ANSWERS, BESIDE, NEEDED, Faulty, silent, slow

ASKED = {
    "GET /api/v1/nodes?limit=500": {"lists of nodes"},
    "GET /api/v1/nodes?resourceVersion=7&watch=true": {"watches of nodes"},
    "GET /api/v1/nodes/vm-1": {"single nodes"},
    "PATCH /api/v1/nodes/vm-1": {"writes of nodes"},
    "PATCH /api/v1/nodes/vm-1/status": {"conditions of nodes"},
    "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dvm-1": {"pods"},
    "GET /apis/policy/v1/poddisruptionbudgets": {"PodDisruptionBudgets"},
    "POST /api/v1/namespaces/default/pods/web/eviction": {"evictions"},
    "GET /api/v1/namespaces/n/configmaps/node-maintenance-ledger": {"the ledger"},
    "PATCH /api/v1/namespaces/n/configmaps/node-maintenance-ledger": {"writes of the ledger"},
    "PATCH /apis/coordination.k8s.io/v1/namespaces/n/leases/reconciler-lock": {"the lock"},
}


@pytest.mark.parametrize("request_line", ASKED)
def test_a_request_is_of_one_kind(request_line: str) -> None:
    met = set()
    for kind, pattern in {**BESIDE, **NEEDED}.items():
        faulty = Faulty()
        faulty.begin(pattern, ANSWERS["500"])
        if faulty.instead(*request_line.split(" ")) is not None:
            met.add(kind)

    assert met == ASKED[request_line] | {"everything"}


def test_a_fault_counts_requests_and_ends() -> None:
    faulty = Faulty()
    before = faulty.instead("GET", "/api/v1/pods")
    faulty.begin("GET .*/pods", silent)
    during = faulty.instead("GET", "/api/v1/pods"), faulty.instead("GET", "/api/v1/nodes")
    faulty.end()

    assert before is None
    assert during[0] is not None
    assert list(during[0]) == [b""]
    assert during[1] is None
    assert faulty.instead("GET", "/api/v1/pods") is None
    assert faulty.met == 1


@pytest.mark.parametrize("status", ["429", "500"])
def test_a_refusal_is_a_whole_answer(status: str) -> None:
    assert b"".join(ANSWERS[status](threading.Event())).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_slow_answer_goes_on_until_the_fault_is_over() -> None:
    over = threading.Event()
    answer: Iterator[bytes] = slow(over)
    begin = list(islice(answer, 1))
    over.set()

    assert begin[0].endswith(b"\r\n\r\n")
    assert list(answer) == []
