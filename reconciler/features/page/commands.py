"""`reconciler page`: opens the page of a reconciler in the cluster."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import webbrowser
from functools import partial

import click

from jobs import options
from jobs.runtime.environment import Target, connected
from jobs.runtime.health import ByQuery, HealthServer
from jobs.runtime.output import echo
from jobs.runtime.outside import reconciler_of
from jobs.runtime.supervised import ended_by_signals, wait_until_set
from reconciler.features.page.forwarding import ForwardedPage, Replica, replicas
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import ClusterError, OutputError
from reconciler.model.reconciler import pod_of

PORT = 8080


@click.command("page")
@options.cluster
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="The port on 127.0.0.1.  [default: 8080, or any other if that is in use]",
)
@click.option(
    "--browser/--no-browser", default=None, help="Open the page in a browser.  [default: if there is one]"
)
def page(target: Target, port: int | None, browser: bool | None) -> int:
    """Open the page of the reconciler, from a Pod that answers.

    It forwards a port on 127.0.0.1 to a Pod of serve by kubectl, and to another one once that is gone, until
    Ctrl-C.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise OutputError("there is no kubectl on the PATH, which forwards the port; install it")
    stop = threading.Event()
    with connected(target) as connection, ended_by_signals(stop):
        forwarded = ForwardedPage(
            kubectl, target, partial(_first_the_leader, connection, target), partial(echo, err=True)
        )
        try:
            forwarded.connect()
            with _server(port, forwarded) as server:
                address = f"http://{server.place}/"
                echo(f"{address}  (Ctrl-C ends it)")
                if browser or (browser is None and _has_browser()):
                    webbrowser.open(address)
                wait_until_set(stop)
        finally:
            forwarded.close()
    return 0


def _first_the_leader(connection: Connection, target: Target) -> tuple[Replica, ...]:
    """Return the Pods that are ready, first the one that has the lock: it knows the progress of drains."""
    ready = replicas(connection, target.namespace)
    try:
        leader = pod_of(reconciler_of(connection, target, None).holder)
    except ClusterError:
        leader = ""
    return tuple(sorted(ready, key=lambda replica: replica.name != leader))


def _server(port: int | None, forwarded: ForwardedPage) -> HealthServer:
    serve = partial(HealthServer, checks={}, documents={"/": ByQuery(forwarded.document)})
    try:
        return serve(("127.0.0.1", PORT if port is None else port))
    except OSError as error:
        if port is None:
            return serve(("127.0.0.1", 0))
        raise OutputError(f"--port {port}: {error.strerror or error}") from error


def _has_browser() -> bool:
    """Whether a person sees what a browser would show: not where only a terminal would."""
    if not sys.stdout.isatty():
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
