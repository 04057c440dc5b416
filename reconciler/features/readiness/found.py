"""What was found about one pod, before the pods of a workload are put together."""

from __future__ import annotations

from typing import NamedTuple

from reconciler.model.pod import Pod
from reconciler.model.readiness import FindingCode, Severity


class Found(NamedTuple):
    """One finding about one pod.

    `about` are the objects that cause it. The findings about a workload with the same `code` and `about` are
    shown as one, so `because` and `remedy` name no pod.
    """

    pod: Pod
    code: FindingCode
    severity: Severity
    because: str
    remedy: str
    about: tuple[str, ...] = ()
