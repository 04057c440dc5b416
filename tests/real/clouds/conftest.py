"""The scene of the passes' tests, with what clouds and onlookers need beside it."""

from tests.real.passes.conftest import programs, scene

__all__ = ["programs", "scene"]
