"""What no text may have that a person reads: each kind of bad sentence that was found once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"

NOUNS = (
    "agents|alerts|attempts|budgets|calls|cases|charts|containers|copies|days|drains|entries|errors|evictions"
    "|events|files|findings|holds|hooks|hours|instances|kinds|labels|lines|machines|messages|minutes|mistakes"
    "|months|namespaces|nodes|notices|objects|others|owners|passes|places|pods|pools|reasons|replicas|requests"
    "|retries|rows|seconds|settings|slots|sources|starts|times|tries|VMs|volumes|weeks|windows|workloads|years"
)

KINDS = {
    "one thing is counted as several": re.compile(rf"(?<![\d.:]) ?\b1 (other |more )?({NOUNS})\b"),
    "a duration is Python's": re.compile(
        r"(?<![\d:.] )(?<![\d:T.-])\b\d:[0-5]\d:[0-5]\d\b|\b\d+ days?, \d+:\d\d:"
    ),
    "a moment is in no zone of the reader": re.compile(
        r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
    ),
    "a value is Python's": re.compile(
        r"\bNone\b|(?<!is )(?<!not )(?<!\")\b(True|False)\b|\bdatetime\.|\btimedelta\("
    ),
    "an object is Python's": re.compile(
        r"\b[A-Za-z]\w*(Error|Exception|Warning)\(|<\w[\w.]*( object)? at 0x|\bmsgspec\b"
    ),
}

WORD = re.compile(r"(?<![\w./:@#=-])(?:[a-z]+[A-Z]\w*|[a-z]+(?:_[a-z]+)+)\b(?![\w./=@-])")
"""A name as programs write it, such as maxUnavailable or max_unavailable, alone between other words."""


OF_OTHERS = frozenset(
    {
        *("appConfig", "automountServiceAccountToken", "binaryData", "eTag", "failurePolicy", "iCalendar"),
        *("leaseDurationSeconds", "minAvailable", "nextLink", "renewTime", "templateUrl"),
        *("unhealthyPodEvictionPolicy", "vCenter", "vCenters"),
    }
)
"""Names that people know from Kubernetes and from other programs."""


@cache
def documented() -> frozenset[str]:
    """Every such name on a page of the docs, and those that people know from elsewhere."""
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    return OF_OTHERS.union(re.findall(r"[a-z]+[A-Z]\w*|[a-z]+(?:_[a-z]+)+", pages))


def faults(text: str) -> Iterator[str]:
    """Yield each bad sentence of a text that is printed, with its kind."""
    for line in text.splitlines():
        for kind, pattern in KINDS.items():
            if pattern.search(line):
                yield f"{kind}: {line.strip()}"
        for word in WORD.findall(line):
            if word not in documented():
                yield f"a word of the code, {word}: {line.strip()}"


_CLOCK = re.compile(r"\b\d\d:\d\d(:\d\d)?\b")
_FAR_AWAY = re.compile(r"\bin (\d+[dhms])+\b|\b(\d+[dhms])+ ago\b|\bnow\b")


def far_away_unsaid(text: str) -> Iterator[str]:
    """Yield each row of a text, printed without a width, that has a moment and not how far away it is."""
    for line in text.splitlines():
        if line.startswith("  ") and _CLOCK.search(line) and not _FAR_AWAY.search(line):
            yield line.strip()
