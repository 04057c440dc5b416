"""Programs of others that these tests run. Each is built or installed once, or its tests are skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.real.passes.conftest import programs, scene
from tests.support.tools.axe import find_axe
from tests.support.tools.building import NoTool, find_tool
from tests.support.tools.chromium import find_chromium
from tests.support.tools.running import RunningAlertmanager

__all__ = ["programs", "scene"]


@pytest.fixture(scope="session")
def actionlint_program() -> Path:
    return _program("actionlint")


@pytest.fixture(scope="session")
def alertmanager_program() -> Path:
    return _program("alertmanager")


@pytest.fixture(scope="session")
def helm_program() -> Path:
    return _program("helm")


@pytest.fixture(scope="session")
def krew_program() -> Path:
    return _program("krew")


@pytest.fixture(scope="session")
def prometheus_program() -> Path:
    return _program("prometheus")


@pytest.fixture(scope="session")
def promtool_program() -> Path:
    return _program("promtool")


@pytest.fixture(scope="session")
def vcsim_program() -> Path:
    return _program("vcsim")


@pytest.fixture(scope="session")
def chromium_program() -> Path:
    return _found(find_chromium)


@pytest.fixture(scope="session")
def axe_script() -> Path:
    return _found(find_axe)


def _program(name: str) -> Path:
    return _found(partial(find_tool, name))


def _found(find: Callable[[], Path]) -> Path:
    try:
        return find()
    except NoTool as error:
        if os.environ.get("CONTROLPLANE_REQUIRED"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
def alertmanager(alertmanager_program: Path, tmp_path: Path) -> Iterator[RunningAlertmanager]:
    folder = tmp_path / "alertmanager"
    folder.mkdir()
    with RunningAlertmanager(alertmanager_program, folder) as running:
        yield running
