"""Decoding JSON in several threads."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Each round has types that nobody has decoded before, and threads that change places all the time.
_FIRST_DECODINGS = """
import sys
from threading import Barrier, Thread
from types import ModuleType

from reconciler.http.failures import decode_json

sys.setswitchinterval(1e-6)
for number in range(100):
    module = sys.modules[f"types{number}"] = ModuleType(f"types{number}")
    exec(
        "from __future__ import annotations\\nimport msgspec\\n"
        "class C(msgspec.Struct):\\n    c: int = 0\\n"
        "class B(msgspec.Struct):\\n    b: list[C] | None = None\\n"
        "class A(msgspec.Struct):\\n    a: B | None = None\\n    x: dict[str, C] | None = None\\n",
        module.__dict__,
    )
    together, found = Barrier(8), []

    def decode():
        together.wait()
        found.append(decode_json(module.A, b'{"a": {"b": [{"c": 1}]}}').a.b[0].c)

    threads = [Thread(target=decode) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 8
"""


@pytest.mark.heavy
def test_threads_that_decode_a_type_first_do_not_crash_the_process() -> None:
    command = [sys.executable, "-c", _FIRST_DECODINGS]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (ended.returncode, ended.stderr) == (0, "")
