"""Which worker of pytest-xdist gets which tests.

Tests go out one by one in the order of their collection. Those of a file with a fixture of the module go out
together, so that one worker makes what they share. `--dist loadgroup` of pytest-xdist 3.8 can't do that: it
changes the ids of tests, which pytest 9.2 ignores.

The first worker begins at the other end. What comes first waits most of the time, for an API server or for
a lock. What comes last needs the CPU, so it runs meanwhile.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_SHARED = 'scope="module"'


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """One run's tests and its workers."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        """Take the configuration of the run. Paths in the ids of tests are relative to its root."""
        super().__init__(config, log)
        self._root = config.rootpath
        self._shares: dict[str, bool] = {}

    def _split_scope(self, nodeid: str) -> str:
        """Return the key of the tests that go out together: a file, or the test alone."""
        path = nodeid.partition("::")[0]
        if path not in self._shares:
            self._shares[path] = _SHARED in (self._root / path).read_text(encoding="utf-8")
        return path if self._shares[path] else nodeid

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Take note of a test that has ended, and forget what is done.

        Else each test that ends would cost a count of all that the worker ever got.
        """
        super().mark_test_complete(node, item_index, duration)
        assigned = self.assigned_work[node]
        for done in [scope for scope, unit in assigned.items() if all(unit.values())]:
            del assigned[done]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node is next(iter(self.assigned_work)):
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
