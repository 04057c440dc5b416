"""What every test run shares: how properties are searched, and a control plane for the tests that need one.

The control plane is started once and emptied before each test that uses it.
"""

import gc
import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reconciler.kubernetes.connection import Connection
from tests.support.controlplane.binaries import NoControlPlane, find_binaries
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.imds import FakeImds
from tests.support.handlers import Handlers, current, remove_new
from tests.support.searching import load_profile
from tests.support.stub import Answer, Asked, Stub, StubMaker

# Here and not in a hook or further down: a test module's `@settings` copies the profile at its import.
load_profile()

_HANDLERS = pytest.StashKey[list[Handlers]]()

# Until all tests are collected: modules, tests and strategies are no garbage, see `_leave_alone_…`.
gc.disable()

# A worker that compiles every test module takes twice as long to start, and so does a child process that
# compiles the whole program.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(tryfirst=True)  # `-m` selects by the marks in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs the control plane; what takes long comes first, so that no worker begins it last."""
    for item in items:
        if "controlplane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)
    seed = config.getoption("shuffle")
    if seed is None:
        # A mutant needs one test that fails, so quick tests come first.
        items.sort(key=_weight, reverse=os.environ.get("LAWS_PROFILE") == "mutants")
    else:
        # Modules stay whole: a fixture of a module is made once. Tests that share one come after the others,
        # which may empty the cluster.
        random = Random(seed)
        modules = {item.path: random.random() for item in items}
        items.sort(key=lambda item: (modules[item.path], _shares(item), random.random()))


def _shares(item: pytest.Item) -> bool:
    """Whether the test uses a fixture of its module."""
    if not isinstance(item, pytest.Function):
        return False
    found = item._fixtureinfo.name2fixturedefs.values()  # pytest has no public way to ask
    return any(one[-1].scope == "module" for one in found)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send tests to the workers as `tests.support.scheduling` does, with `--dist loadscope` alone."""
    if config.getvalue("dist") != "loadscope":
        return None
    # Here, because only the main process of several has a scheduler.
    from tests.support.scheduling import Scheduling

    return Scheduling(config, log)


def _weight(item: pytest.Item) -> int:
    if item.get_closest_marker("slow"):
        return 0
    return 1 if item.get_closest_marker("cluster") else 2


# First of all wrappers, so that pytest has no handler of its own there.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Note which handlers of logs there are before a test."""
    item.stash[_HANDLERS] = current()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that leaves a handler: every later test of the process would write to its closed stream."""
    yield
    if left := remove_new(item.stash[_HANDLERS]):
        pytest.fail(f"the test leaves {', '.join(left)}; see tests/support/handlers.py", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Let a report with half of a surrogate pair, from a log for example, reach the main process."""
    found = yield
    return _encodable(found) if found and (found.get("sections") or found.get("longrepr")) else found


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_encodable, value))
    return value


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--shuffle SEED`: every worker sorts alike, as pytest-xdist demands."""
    parser.addoption("--shuffle", type=int, default=None, metavar="SEED", help="run in a random order")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before any test's time runs: it takes minutes, once."""
    _leave_alone_what_was_imported()
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


def _leave_alone_what_was_imported() -> None:
    """Keep the garbage collector from walking modules, tests and strategies again and again.

    A pass makes many small objects and almost no cycles, so that looking for them less often is enough.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def controlplane() -> Iterator[ControlPlane]:
    """One for the whole session, with whatever earlier tests left behind: see `cluster`."""
    # Cleaning ends namespaces itself. Their controller knows them by name alone: begun for one test, it would
    # go on to delete what the next one puts into a namespace of the same name.
    server = ControlPlane(ready_after=0.1, deleted_after=0.2, empties_namespaces=False, cores=1)
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
    controlplane.clean()
    return controlplane


@pytest.fixture
def imds() -> Iterator[FakeImds]:
    """Whatever a test does, Azure would not have refused it."""
    with FakeImds() as server:
        yield server
        assert server.violations == []


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[StubMaker]:
    """Make a stub that answers by a function, and a connection to it that never really sleeps."""
    made: list[tuple[Stub, Connection]] = []

    def make(answer: Callable[[Asked], Answer]) -> tuple[Stub, Connection]:
        server = Stub(answer)
        kubeconfig = server.write_kubeconfig(tmp_path / f"stub-{len(made)}")
        pair = server, Connection(str(kubeconfig), sleep=server.slept.append)
        made.append(pair)
        return pair

    yield make
    for server, connection in made:
        connection.close()
        server.close()
