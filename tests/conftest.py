"""What every test run shares: how properties are searched, and a control plane for the tests that need one.

The control plane is started once and emptied before each test that uses it.
"""

import os
from collections.abc import Iterator

import pytest

from tests.support.controlplane.binaries import NoControlPlane, find_binaries
from tests.support.controlplane.cleaning import clean
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.imds import FakeImds
from tests.support.searching import load_profile

# Here and not in a hook or further down: a test module's `@settings` copies the profile at its import.
load_profile()

# A child process that compiles the whole program takes twice as long to start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the control plane has the marker `cluster`."""
    for item in items:
        if "controlplane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before any test's time runs: it takes minutes, once."""
    asking = [item for item in session.items if item.get_closest_marker("cluster")]
    if session.config.option.collectonly or not asking:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            find_binaries()
    except NoControlPlane as error:
        # As a marker, because pytest then reports it in one line. Where it is required the fixture fails.
        if not os.environ.get("CONTROLPLANE_REQUIRED"):
            for item in asking:
                item.add_marker(pytest.mark.skip(reason=str(error)))


@pytest.fixture(scope="session")
def controlplane() -> Iterator[ControlPlane]:
    """One for the whole session, with whatever earlier tests left behind: see `cluster`."""
    # Cleaning ends namespaces itself. Their controller knows them by name alone: begun for one test, it would
    # go on to delete what the next one puts into a namespace of the same name.
    server = ControlPlane(empties_namespaces=False)
    try:
        server.start()
    except NoControlPlane as error:
        pytest.fail(str(error), pytrace=False)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def cluster(controlplane: ControlPlane) -> ControlPlane:
    """The control plane, running and without anything that an earlier test made."""
    controlplane.start_apiserver()
    clean(controlplane.api)
    return controlplane


@pytest.fixture
def imds() -> Iterator[FakeImds]:
    """Whatever a test does, Azure would not have refused it."""
    with FakeImds() as server:
        yield server
        assert server.violations == []
