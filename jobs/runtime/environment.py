"""Where a job runs and which cluster it acts on, from its arguments and the environment."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from shlex import quote
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler.model.errors import ClusterError, NoServer, Unauthorized
from reconciler.model.snapshot import Self

if TYPE_CHECKING:
    from reconciler.kubernetes.connection import Connection


class Target(Struct, frozen=True):
    """The cluster that a job acts on. None is what kubectl would use, then the pod's ServiceAccount."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str = "node-maintenance"


@contextmanager
def connected(target: Target, *, someone_waits: bool = True) -> Iterator[Connection]:
    """Connect to the API server, and close the connection at the end.

    `someone_waits`: without an answer to the first request, the command ends at once. A Pod tries again for
    some seconds, because its API server may just be starting. The errors that end a command say which server
    it was, and what to change.
    """
    from reconciler.kubernetes.connection import Connection

    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    connection = Connection(target.kubeconfig, target.context, someone_waits=someone_waits and not in_pod)
    _warn(connection.insecure)
    try:
        yield connection
    except NoServer as error:
        because = str(error).partition(": ")[2]
        raise NoServer(
            f"no answer from the API server {connection.place}: {because}. Is it the right cluster? "
            "--context and --kubeconfig name another one"
        ) from error
    except ClusterError as error:
        # The type, the status and the permission stay: the exit code and others go by them.
        error.args = (_with_remedy(error, connection.place),)
        raise
    finally:
        connection.close()


@cache
def _warn(text: str) -> None:
    """Print a warning once in the life of a process; an empty one is none."""
    if text:
        from jobs.runtime.output import echo

        echo(f"warning: {text}", err=True)


REPORT_ROLE = "node-maintenance-reconciler-report"
"""The ClusterRole of k8s/report."""

_USER = re.compile(r'User "([^"]+)" cannot')
_ACCOUNT = "system:serviceaccount:"


def _with_remedy(error: ClusterError, place: str) -> str:
    """Return what a person may not do, or what failed, then what to do, then the details."""
    details = f"The API server is {place}"
    if error.status != 403 or not error.needs:
        refused = isinstance(error, Unauthorized)
        to_do = ". Sign in again, or name another context with --context" if refused else ""
        return f"{error}{to_do}. {details}"
    named = _USER.search(str(error))
    user = named[1] if named is not None else "USER"
    who = f" as {user}" if named is not None else ""
    # What people read is in one role. Whoever writes has rights of their own.
    if error.needs.partition(" ")[0] in ("get", "list", "watch"):
        name = user.removeprefix(_ACCOUNT)
        subject = f"--serviceaccount {quote(name)}" if name != user else f"--user {quote(user)}"
        bind = f"kubectl create clusterrolebinding maintenance-reader --clusterrole {REPORT_ROLE} {subject}"
        remedy = (
            "The manifests in k8s/report give the rights that reports and plans need. An administrator of "
            f"the cluster types: `kubectl apply -k k8s/report` and `{bind}`"
        )
    else:
        remedy = (
            f"Ask an administrator of the cluster for the permission {error.needs} (docs/instructions.md)"
        )
    return f"you may not {error.needs}{who}. {remedy}. {details}: {error}"


class VariablesAsWritten(dict[str, str]):
    """The variables of a person's shell, for the settings of a Pod.

    A variable that only the Pod has stays as it is written there.
    """

    def __contains__(self, name: object) -> bool:
        """Whether it has a content, which each has."""
        return True

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]  # no other default is asked for
        """Return its content, else the default, else the text in the settings."""
        return self[name] if name in self.keys() else default or f"${{{name}}}"


def itself() -> Self:
    """Return the node and pod in which we run, from NODE_NAME, POD_NAMESPACE, POD_NAME and POD_UID."""
    name = os.environ.get("POD_NAME")
    namespace = os.environ.get("POD_NAMESPACE")
    return Self(
        node=os.environ.get("NODE_NAME") or None,
        pod=f"{namespace}/{name}" if name and namespace else None,
        pod_uid=os.environ.get("POD_UID", ""),
    )


def identity() -> str:
    """Return a new identity for a lock: unique text that helps a person find this process."""
    return f"{this_process()}{next(_locks)}"


def this_process() -> str:
    """Return how the identities of all locks of this process begin.

    A restarted container has the same pod name and process number, hence the random part.
    """
    return f"{_place()}/{_random(os.getpid())}."


def is_our_place(holder: str) -> bool:
    """Whether a holder of the lock has our host and process number: it is this process, or an earlier one."""
    return holder.rpartition("/")[0] == _place()


def _place() -> str:
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}/{os.getpid()}"


_locks = count(1)


@cache
def _random(process: int) -> str:
    """Return a text of its own for each process, also for one that was forked."""
    return uuid.uuid4().hex[:8]
