"""Signals end a process, whichever of its threads the kernel gives them to."""

from __future__ import annotations

import subprocess
import sys
import textwrap

WAITING = """
    import os, signal, threading, time
    from jobs.runtime import supervised
    from jobs.runtime.supervised import ended_by_signals, wait_until_set

    supervised.LOOK_EVERY = 0.05
    stop, waits = threading.Event(), threading.Event()

    class Main(threading.Event):
        def wait(self, timeout=None):
            waits.set()
            return stop.wait(timeout)

    def end():
        waits.wait()
        # The main thread sleeps by the time that the kernel shows it in a futex.
        while open(f"/proc/{os.getpid()}/stat").read().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with ended_by_signals(stop):
        threading.Thread(target=end).start()
        wait_until_set(Main())
    print("ended")
"""


def test_a_signal_that_another_thread_gets_ends_the_wait_of_the_main_thread() -> None:
    command = [sys.executable, "-c", textwrap.dedent(WAITING)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)

    assert done.stdout == "ended\n"
