"""Where a report goes besides stdout: a file, a ConfigMap, or an address that takes it by POST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from jobs.runtime.environment import Target, connected
from jobs.runtime.output import check_output, write_output
from reconciler.model.content import ConfigMapName
from reconciler.model.errors import ClusterError, Forbidden, NotFound, OutputError

Destination = Path | ConfigMapName | str
"""A file, a ConfigMap, or a URL."""

STDOUT = Path("-")

KEY = "report"
"""The key of a ConfigMap that has the report."""

LARGEST = 1_048_576
"""Bytes that a ConfigMap may have."""

_SECONDS = 30.0
"""How long an address may take to answer."""

MEDIA_TYPES = {
    "json": "application/json",
    "yaml": "application/yaml",
    "markdown": "text/markdown; charset=utf-8",
}
"""The media type of a report, by the value of `--output`; of all others it is TEXT."""

TEXT = "text/plain; charset=utf-8"


def check(destinations: Sequence[Destination]) -> None:
    """Raise OutputError if the folder of a file does not exist, before anything else is done."""
    for place in destinations:
        if isinstance(place, Path) and place != STDOUT:
            check_output(place)


def deliver(destinations: Sequence[Destination], text: str, media_type: str, target: Target) -> None:
    """Write the text, which is of this type, to all of these but stdout.

    What can't be written keeps nothing from the others. Raises OutputError that names each such one.
    """
    mistakes: list[str] = []
    for place in destinations:
        write: Callable[[], None]
        match place:
            case Path():
                write = partial(write_output, place, text)
            case ConfigMapName():
                write = partial(_to_config_map, place, text, target)
            case _:
                write = partial(_post, place, text, media_type)
        try:
            if place != STDOUT:
                write()
        except OutputError as error:
            mistakes.append(str(error))
    if mistakes:
        raise OutputError("; ".join(mistakes))


def _to_config_map(name: ConfigMapName, text: str, target: Target) -> None:
    from reconciler.kubernetes.connection import MERGE_PATCH, Request, core
    from reconciler.kubernetes.objects import send

    if (size := len(text.encode())) > LARGEST:
        raise OutputError(
            f"{name}: the report has {size} bytes, and a ConfigMap {LARGEST} at most; print only some rows "
            "with NODES, --selector or --only"
        )
    path = core(name.namespace) / "configmaps" / name.name
    request = Request("PATCH", path, body={"data": {KEY: text}}, content_type=MERGE_PATCH)
    try:
        with connected(target) as connection:
            send(connection, lambda: None, request)
    except NotFound as error:
        create = f"kubectl -n {name.namespace} create configmap {name.name}"
        raise OutputError(f"{name}: there is no such ConfigMap; create it with: {create}") from error
    except Forbidden as error:
        raise OutputError(f"{name}: it may not be written; that needs {error.needs}") from error
    except ClusterError as error:
        raise OutputError(f"{name}: can't be written: {error}") from error


def _post(url: str, text: str, media_type: str) -> None:
    from urllib3.exceptions import HTTPError

    from reconciler.http.bounded import BoundedClient, Bounds

    # Paths and queries of such addresses are secrets.
    where = f"--out {urlsplit(url).scheme}://{urlsplit(url).hostname}"
    client = BoundedClient("report")
    try:
        body, headers = text.encode(), {"Content-Type": media_type}
        answer = client.send("POST", url, Bounds(_SECONDS), body=body, headers=headers)
    except (HTTPError, OSError, ValueError) as error:
        raise OutputError(f"{where}: no answer ({type(error).__name__})") from error
    finally:
        client.close()
    if answer.status >= 300:
        raise OutputError(f"{where}: answered {answer.status}, so the report was not taken")
