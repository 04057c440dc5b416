"""Files, sockets and modules that can't be opened, as a kernel says it at the limit of open files."""

from __future__ import annotations

import errno
import os
import sys
import threading
from pathlib import Path
from types import FrameType

_ROOT = f"{Path(__file__).parents[3]}/"
_OURS = (f"{_ROOT}tests/", f"{_ROOT}reconciler/", f"{_ROOT}jobs/")
FAILED = "can't be opened:"
"""Begins a line on stderr for each failure."""

_OPENS = {"open", "socket.__new__", "import"}
"""Events of the interpreter. A module that is imported is a file that is opened."""


def places_fail_once(while_there: Path) -> None:
    """From now on, each place of the program that opens something fails once, while this file is there.

    That can't be undone: an audit hook stays until the end of the process.
    """
    failed: set[str] = set()
    lock = threading.Lock()

    def hook(event: str, _: tuple[object, ...]) -> None:
        if event not in _OPENS or not os.access(while_there, os.F_OK):
            return
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.startswith(_OURS):
            frame = frame.f_back
        # What another fake opens is no part of the program.
        if frame is None or frame.f_code.co_filename.startswith(_OURS[0]):
            return
        place = f"{event} {frame.f_code.co_filename.removeprefix(_ROOT)}:{frame.f_lineno}"
        with lock:
            if place in failed:
                return
            failed.add(place)
        os.write(2, f"{FAILED} {place}\n".encode())
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    sys.addaudithook(hook)
