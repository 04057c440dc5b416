"""How property tests search: the same examples in every run, unless a run asks for new ones.

A run plays half of the examples that a property names. `LAWS_PROFILE=random` plays all, searches new ones,
and keeps the failing ones. `LAWS_PROFILE=mutants` plays half of them, too, and stops at the first that fails.
`LAWS_PROFILE=quick` plays a twentieth of the examples and a tenth of the kills. Nothing else of the
environment matters.

A property that plays a `QUARTER` in a usual run, and with a mutant, still fails without each of its rules.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

# How fast examples are made says something about the machine only: the first text of a fresh checkout
# builds hypothesis' table of characters, and a busy machine is slow.
_OF_THE_MACHINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
_VARIABLE = "LAWS_PROFILE"
_QUICK = "quick"
_RANDOM = "random"
_USUAL = 100
_PARTS = {_QUICK: 20, _RANDOM: 1}
"""A run plays one of so many parts of the examples."""
HALF, QUARTER = 2, 4
"""What a property may play in a run that is neither quick nor random, as the parts of a whole."""


def load_profile() -> None:
    """Choose the profile. Call it before any test module is imported: `@settings` copies what holds then."""
    common = settings(
        deadline=None, suppress_health_check=_OF_THE_MACHINE, print_blob=True, max_examples=examples(_USUAL)
    )
    settings.register_profile("same", common, derandomize=True)
    settings.register_profile(_RANDOM, common)
    settings.register_profile(
        "mutants",
        common,
        derandomize=True,
        database=None,
        # A mutant only has to fail: a smaller example is of no interest.
        phases=(Phase.explicit, Phase.generate),
    )
    settings.register_profile(_QUICK, common, derandomize=True)
    settings.load_profile(os.environ.get(_VARIABLE) or "same")


def is_quick() -> bool:
    """Whether this run plays a part of the examples only."""
    return os.environ.get(_VARIABLE) == _QUICK


def examples(number: int, usual: int = HALF) -> int:
    """Return how many examples a property plays in this run, of the number that it names."""
    return max(1, number // _parts(usual))


def hits(least: int, usual: int = HALF) -> int:
    """Return how often the core of a property must run in this run, of the number that it names.

    A quick run demands nothing: it plays too few examples for that.
    """
    return 0 if is_quick() else max(1, least // _parts(usual))


def kills(writes: int) -> range:
    """Return at which of so many writes, from 1 on, this run kills a process: at each, or at every tenth."""
    return range(1, writes + 1, 10 if is_quick() else 1)


def _parts(usual: int) -> int:
    return _PARTS.get(os.environ.get(_VARIABLE, ""), usual)
