"""A real control plane for the tests that ask for one: started once, emptied before each of them."""

import os
from collections.abc import Iterator

import pytest

from tests.support.controlplane.binaries import NoControlPlane, find_binaries
from tests.support.controlplane.cleaning import clean
from tests.support.controlplane.server import ControlPlane


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
        # As a marker, since pytest then says it in one line; in CI the fixture fails.
        if not os.environ.get("CI"):
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
