"""Asks Prometheus the queries of checks, each once per pass.

A server that is slow or broken costs a pass a few seconds at most: each answer has a total time and a size, a
pass has a total time for all of them, and a server that failed has a pause. Nothing is sent twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

import msgspec
import urllib3
from msgspec import Struct
from urllib3.util import make_headers

from reconciler import USER_AGENT
from reconciler.features.workflows.services import PrometheusAnswer, PrometheusQuery, Sample
from reconciler.http.bounded import BoundedClient, Bounds
from reconciler.http.failures import cause_of, decode_json
from reconciler.model import limits

ANSWER = 2.0
"""Seconds for one answer."""

PATIENCE = 4.0
"""Seconds for all answers of one pass. A query after that has no answer in this pass."""

PAUSE = 30.0
"""Seconds in which a server that failed is not asked again."""

KEPT = 5.0
"""Seconds for which an answer is used: passes may follow each other within a second."""

SIZE = 1 << 20
"""Bytes of one answer."""

SAMPLES = 1000
"""Samples of one answer. A check needs one, or a few alerts."""

_LABELS = 64


class _Element(msgspec.Struct):
    metric: dict[str, str] = msgspec.field(default_factory=dict)
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct):
    result_type: str = msgspec.field(name="resultType", default="")
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct):
    status: str = ""
    data: _Data | None = None
    error: str = ""


class _Kept(Struct, frozen=True):
    until: float
    answer: PrometheusAnswer


class Prometheus:
    """Sends instant queries. Safe for one thread."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        answer: float = ANSWER,
        patience: float = PATIENCE,
    ) -> None:
        """Use this clock for ages. `answer` and `patience` are the seconds for one answer and for a pass."""
        self._clock = clock
        self._answer = answer
        self._patience = patience
        self._client = BoundedClient("prometheus")
        self._kept: dict[PrometheusQuery, _Kept] = {}
        self._failed: dict[str, _Kept] = {}

    def ask(self, queries: Sequence[PrometheusQuery], /) -> Mapping[PrometheusQuery, PrometheusAnswer]:
        """Return the answer to each query; a failure is its `problem`. Raises nothing."""
        began = now = self._clock()
        self._kept = {query: one for query, one in self._kept.items() if now < one.until}
        self._failed = {url: one for url, one in self._failed.items() if now < one.until}
        found: dict[PrometheusQuery, PrometheusAnswer] = {}
        for query in dict.fromkeys(queries):
            if query in self._kept:
                found[query] = self._kept[query].answer
                continue
            left = began + self._patience - self._clock()
            if query.url in self._failed:
                found[query] = self._failed[query.url].answer
            elif left <= 0:
                found[query] = PrometheusAnswer(problem="other queries took all of the time of this pass")
            else:
                found[query] = self._one(query, min(left, self._answer))
        return found

    def _one(self, query: PrometheusQuery, seconds: float) -> PrometheusAnswer:
        try:
            answer = self._read(query, seconds)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            answer = PrometheusAnswer(problem=f"no answer: {cause_of(error)}")
            self._failed[query.url] = _Kept(self._clock() + PAUSE, answer)
            return answer
        self._kept[query] = _Kept(self._clock() + KEPT, answer)
        return answer

    def _read(self, query: PrometheusQuery, seconds: float) -> PrometheusAnswer:
        url, headers = _address(query.url)
        body = urlencode({"query": query.query, "timeout": f"{seconds:.3f}s"})
        response = self._client.send("POST", url, Bounds(seconds, SIZE), body=body, headers=headers)
        try:
            read = decode_json(_Answer, response.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return PrometheusAnswer(problem=f"HTTP {response.status}, and no answer of Prometheus")
        if read.status != "success" or read.data is None:
            why = limits.text(read.error, 300) or f"HTTP {response.status}"
            return PrometheusAnswer(problem=f"the query failed: {why}")
        return _samples(read.data)


def _address(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL of the API and the headers; a user in the URL becomes a header, as in Go."""
    parts = urlsplit(url)
    headers = {
        "User-Agent": USER_AGENT,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers |= make_headers(basic_auth=user)
    host = parts.netloc.rpartition("@")[2]
    path = f"{parts.path.rstrip('/')}/api/v1/query"
    return urlunsplit((parts.scheme, host, path, "", "")), headers


def _samples(data: _Data) -> PrometheusAnswer:
    if data.result_type == "scalar":
        return PrometheusAnswer(problem="the query returns a scalar; write vector(…) around it")
    if data.result_type != "vector":
        kind = limits.excerpt(data.result_type)
        return PrometheusAnswer(problem=f"the query returns {kind}, not a vector")
    try:
        elements = decode_json(list[_Element], data.result)
        if len(elements) > SAMPLES:
            return PrometheusAnswer(problem=f"the query returns {len(elements)} samples")
        return PrometheusAnswer(tuple(map(_sample, elements)))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return PrometheusAnswer(problem="the samples can't be read")


def _sample(element: _Element) -> Sample:
    if element.value is None:
        raise ValueError("a histogram")
    labels = sorted(element.metric.items())[:_LABELS]
    return Sample(
        float(element.value[1]),
        {limits.text(key, limits.NAME): limits.text(value, limits.NAME) for key, value in labels},
    )
