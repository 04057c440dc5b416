"""A scene on the real API server, in this process or as processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.forks import Forks
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.server import ControlPlane


@pytest.fixture
def scene(cluster: ControlPlane) -> Iterator[Scene]:
    """An empty cluster; the program's parts are ended when the test is."""
    made = Scene(cluster)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def programs(cluster: ControlPlane, forks: Forks, tmp_path: Path) -> Iterator[Programs]:
    """Runs the program as its users do; at the end it kills processes that still run."""
    with Programs(cluster.kubeconfig, tmp_path, forks) as made:
        yield made
