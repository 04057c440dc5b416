"""A process that takes the lock and answers on its standard output to each command on its input.

Arguments: kubeconfig, identity, duration and renewal in seconds, and a file: once it exists the process has
slept for the duration. Words: `check`, `release`, `end`.
"""

import sys
from pathlib import Path

from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.lease import Lock
from reconciler.kubernetes.server_time import boottime
from reconciler.model.errors import LockHeld, LockLost


def main() -> None:
    """Say `held` or `refused HOLDER`; then obey."""
    kubeconfig, identity, duration, renewal, slept = sys.argv[1:]
    lock = Lock(
        Connection(kubeconfig),
        identity=identity,
        duration=float(duration),
        renew_every=float(renewal),
        held_clock=lambda: boottime() + float(duration) * Path(slept).exists(),
    )
    try:
        lock.acquire()
    except LockHeld as error:
        print(f"refused {error.holder}", flush=True)
        return
    print("held", flush=True)
    for word in sys.stdin:
        match word.strip():
            case "check":
                try:
                    lock.check()
                    print("ours", flush=True)
                except LockLost as error:
                    print(f"lost {error}", flush=True)
            case "release":
                lock.release()
                print("released", flush=True)
            case "end":
                return


main()
