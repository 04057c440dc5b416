"""The network of a run: a switch, and a network namespace for each node, as a machine has its own.

It is made inside the network namespace of the run, so that all of it ends with that.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.support.controlplane.configuration import SERVICE

Value = TypeVar("Value")

GATEWAY = "10.0.0.1"
_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_NSENTER = shutil.which("nsenter") or "nsenter"


def address(number: int) -> str:
    """Return the address of a node."""
    return f"10.0.0.{10 + number}"


def pods(number: int) -> str:
    """Return the addresses of a node's Pods."""
    return f"10.88.{number}.0/24"


def prepare() -> None:
    """Make the switch, and the address at which Pods find the API server."""
    _forward()
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{SERVICE}/32", "dev", "lo")
    # By itself it takes the address of one of its cables, and nobody finds it when that is cut.
    _ip("link", "add", "switch", "address", "02:00:00:00:00:01", "type", "bridge")
    _ip("address", "add", f"{GATEWAY}/24", "dev", "switch")
    _ip("link", "set", "switch", "up")


def plug_in(name: str, number: int) -> None:
    """Make the network of a node, and connect it to the switch."""
    cable = f"cable{number}"
    _ip("netns", "add", name)
    _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", cable, "master", "switch", "up")
    inside = ("-n", name)
    _ip(*inside, "link", "set", "lo", "up")
    _ip(*inside, "address", "add", f"{address(number)}/24", "dev", "eth0")
    _ip(*inside, "link", "set", "eth0", "up")
    _ip(*inside, "route", "add", "default", "via", GATEWAY)
    _ip("route", "replace", pods(number), "via", address(number))
    subprocess.run([*into(name), "/bin/sh", "-c", _FORWARD], check=True)


def cut(number: int) -> None:
    """Take the cable of a node away, if it has one."""
    subprocess.run(["ip", "link", "delete", f"cable{number}"], capture_output=True, check=False)


def remove(name: str) -> None:
    """Remove the network of a node, whose processes have ended."""
    if (_NAMESPACES / name).exists():
        _ip("netns", "delete", name)


def connect(number: int, *, connected: bool) -> None:
    """Pull the cable of a node, or put it in again."""
    _ip("link", "set", f"cable{number}", "up" if connected else "down")


def into(name: str) -> list[str]:
    """Return what a command begins with that runs in the network of a node."""
    # Not `ip netns exec`, which runs it in another mount namespace.
    return [_NSENTER, f"--net={_NAMESPACES / name}", "--"]


def within(name: str, make: Callable[[], Value]) -> Value:
    """Make something with sockets in the network of a node; close it before that network ends."""

    def made() -> Value:
        with (_NAMESPACES / name).open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"can't enter the network of {name}")
        return make()

    # The network is that of a thread, which ends with it.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(made).result()


_FORWARD = "echo 1 > /proc/sys/net/ipv4/ip_forward"


def _forward() -> None:
    subprocess.run(["/bin/sh", "-c", _FORWARD], check=True)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        msg = f"ip {' '.join(arguments)}: {done.stderr.strip()}"
        raise RuntimeError(msg)
