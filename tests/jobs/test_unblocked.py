"""Output that nobody reads blocks nobody, and what of it was dropped is said."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from jobs.runtime.unblocked import Unblocked
from tests.support.controlplane.processes import wait_for


class Pipe:
    """A pipe that nobody reads until `read` is called."""

    def __init__(self) -> None:
        self.theirs, self.ours = os.pipe()

    def fill(self) -> int:
        """Let the pipe take nothing any more; return how many bytes it has."""
        os.set_blocking(self.ours, False)
        size = 0
        try:
            while True:
                size += os.write(self.ours, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(self.ours, True)
        return size

    def read(self, end: bytes) -> bytes:
        """Return what was written, up to this end."""
        read = b""
        while not read.endswith(end):
            read += os.read(self.theirs, 1 << 16)
        return read

    def close(self) -> None:
        for file in (self.theirs, self.ours):
            os.close(file)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def said(lines: int) -> str:
    return f"dropped {lines}"


def test_what_is_written_comes_in_its_order(pipe: Pipe) -> None:
    output = Unblocked(pipe.ours, said)
    for number in range(1000):
        output.write(f"{number}\n".encode())
    output.wait(time.monotonic() + 60)
    assert pipe.read(b"999\n").split() == [str(number).encode() for number in range(1000)]


def test_a_full_pipe_blocks_no_write_and_the_next_line_that_fits_says_what_was_dropped(pipe: Pipe) -> None:
    filled = pipe.fill()
    output = Unblocked(pipe.ours, said, most=100)
    output.write(b"first\n")
    for _ in range(3):
        output.write(b"a\n" * 50 + b"b\n")
    assert output.dropped == 153

    assert pipe.read(b"first\n")[filled:] == b"first\n"
    output.wait(time.monotonic() + 60)
    output.write(b"last\n")
    assert pipe.read(b"last\n") == b"dropped 153\nlast\n"


def test_at_the_end_it_is_said_what_was_dropped(pipe: Pipe) -> None:
    pipe.fill()
    output = Unblocked(pipe.ours, said, most=len(b"dropped 1\n"))
    output.write(b"much too long\n")
    assert output.dropped == 1
    wait_for("room", lambda: os.read(pipe.theirs, 1 << 16))
    output.wait(time.monotonic() + 60)
    assert pipe.read(b"dropped 1\n").endswith(b"dropped 1\n")


def test_the_wait_for_a_pipe_that_nobody_reads_ends(pipe: Pipe) -> None:
    pipe.fill()
    output = Unblocked(pipe.ours, said)
    output.write(b"never\n")
    ends = time.monotonic() + 0.05
    output.wait(ends)
    assert time.monotonic() >= ends
    assert output.dropped == 0


def test_output_that_nobody_can_read_any_more_fails_nobody(pipe: Pipe) -> None:
    output = Unblocked(pipe.ours, said)
    os.close(pipe.theirs)
    pipe.theirs = os.dup(pipe.ours)
    output.write(b"1\n2\n")
    wait_for("the failure", lambda: output.dropped == 2)
    output.write(b"3\n")
    wait_for("the next one", lambda: output.dropped >= 3)


def test_a_pipe_that_another_process_made_non_blocking_is_written_whole(pipe: Pipe) -> None:
    os.set_blocking(pipe.ours, False)
    output = Unblocked(pipe.ours, said)
    text = b"y" * 1_000_000 + b"\n"
    output.write(text)
    assert pipe.read(b"\n") == text
