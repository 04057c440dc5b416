"""Exact arithmetic with Kubernetes quantities. Source: k8s.io/apimachinery pkg/api/resource/quantity.go."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(10**power) for letter, power in zip("kMGTPE", range(3, 19, 3), strict=True)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}


# Thousands of pods have the same few requests.
@lru_cache(maxsize=4096)
def quantity(text: str) -> Fraction:
    """Parse a quantity such as 100m, 1.5Gi or 2e3. Raises ValueError for anything else."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    sign, digits, suffix, exponent = found.groups()
    value = Fraction(digits.rstrip(".") if digits.endswith(".") else digits)
    if suffix:
        value *= _SUFFIXES[suffix]
    elif exponent:
        value *= Fraction(10) ** int(exponent)
    return -value if sign == "-" else value


def total(requests: Iterable[Mapping[str, str]]) -> dict[str, Fraction]:
    """Return the sum of the requests of several containers. Raises ValueError for an invalid quantity."""
    sums: dict[str, Fraction] = {}
    for container in requests:
        for resource, text in container.items():
            sums[resource] = sums.get(resource, Fraction(0)) + quantity(text)
    return sums
