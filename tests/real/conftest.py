"""What all tests of the program's processes share: one process that has loaded the program."""

from collections.abc import Iterator

import pytest

from tests.real.forks import Forks


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Forks the program for each command, which takes a tenth of the time of a fresh interpreter."""
    with Forks() as made:
        yield made
