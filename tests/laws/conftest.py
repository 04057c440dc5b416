"""How the laws' properties are searched: the same examples everywhere in CI, new ones at a desk."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_COMMON = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
_CHOSEN = os.environ.get("LAWS_PROFILE") or ("ci" if os.environ.get("CI") else "desk")

settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=_COMMON)
settings.register_profile("desk", deadline=None, suppress_health_check=_COMMON)
# A mutant only has to fail: how small the example gets is of no interest.
settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=_COMMON,
)
settings.load_profile(_CHOSEN)
