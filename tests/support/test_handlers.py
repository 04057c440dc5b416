"""What a test leaves on the loggers is found and removed, and a test can give them back."""

from __future__ import annotations

import logging
from io import StringIO

import pytest

from tests.support import handlers


@pytest.mark.parametrize("name", handlers.LOGGERS)
def test_a_handler_that_stays_is_found_and_removed(name: str) -> None:
    logger, before = logging.getLogger(name), handlers.current()
    handler = logging.StreamHandler(StringIO())
    logger.addHandler(handler)

    assert handlers.remove_new(before) == [f"{handler!r} on {logger!r}"]
    assert handlers.current() == before


def test_the_root_has_its_handlers_and_its_level_again() -> None:
    before, level = handlers.current(), logging.getLogger().level
    with handlers.restored():
        logging.basicConfig(level=logging.DEBUG, force=True)

    assert handlers.current() == before
    assert logging.getLogger().level == level
