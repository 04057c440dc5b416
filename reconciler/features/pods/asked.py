"""How one pod was moved, as the cluster or a file has kept it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from jobs.runtime.process import AskedPod
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.features.pods.lines import PodLines
from reconciler.features.pods.moved import MovedPod, to_fields
from reconciler.features.pods.publisher import read_published
from reconciler.features.pods.report import how
from reconciler.kubernetes.kept_lines import KeptInCluster, KeptLines
from reconciler.model.errors import ClusterError, Forbidden
from reconciler.model.explanation import KnownMove
from reconciler.model.limits import EARLIEST, count_of
from reconciler.model.moments import to_text

Answer = tuple[Sequence[KnownMove], Sequence[str]]
"""How it was moved, and sentences about what could not be read."""


def moves_in_files(asked: AskedPod, files: Iterable[Path]) -> Answer:
    """Return what the lines of files say of the pod; raises `click.FileError`."""
    lines = PodLines(EARLIEST, asked.namespace, asked.name)
    for path in files:
        lines.read(path)
    broken = [f"{count_of(lines.broken, 'line')} about the pod can't be read"] if lines.broken else []
    return [_known(pod) for pod in lines.pods], broken


def moves_in_cluster(asked: AskedPod) -> Answer:
    """Return what the cluster keeps of the pod, else what is published of it in its namespace."""
    place = KeptInCluster(MOVED_PODS, asked.connection, asked.target.namespace)
    try:
        kept = place.read()
    except Forbidden as error:
        published = None
        # Without it, what is missing is the right to read what is kept.
        with suppress(ClusterError, ValueError):
            published = read_published(asked.connection, asked.namespace)
        if published is None:
            return (), [f"the ConfigMap {place.name} could not be read: {error.because}"]
        kept = KeptLines(published.whole_from, published.moved)
    except ClusterError as error:
        return (), [f"the ConfigMap {place.name} could not be read: {error.because}"]
    except ValueError as error:
        return (), [place.unreadable(error)]
    pods = kept.lines if kept is not None else ()
    return [_known(pod) for pod in pods if pod.pod == f"{asked.namespace}/{asked.name}"], ()


def _known(pod: MovedPod) -> KnownMove:
    owner = f" ({pod.owner})" if pod.owner else ""
    case = f"; the case of its node began at {to_text(pod.case)}" if pod.case is not None else ""
    return KnownMove(pod.at, f"{how(pod)}{owner}{case}", to_fields(pod))
