"""The network of a run: a switch, and a network namespace for each node, as a machine has its own.

It is made inside the network namespace of the run, so that all of it ends with that.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path
from typing import TypeVar

from tests.support.controlplane.configuration import Family

Value = TypeVar("Value")

_SWITCH = "switch"
_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_NSENTER = shutil.which("nsenter") or "nsenter"


def prepare(families: Sequence[Family]) -> None:
    """Make the switch, and the addresses at which Pods find the API server; what is there already stays."""
    _run("/bin/sh", "-c", _FORWARD)
    if subprocess.run(["ip", "link", "show", _SWITCH], capture_output=True, check=False).returncode:
        # By itself it takes the address of one of its cables, and nobody finds it when that is cut.
        _ip("link", "add", _SWITCH, "address", "02:00:00:00:00:01", "type", "bridge")
        _ip("link", "set", _SWITCH, "up")
    for family in families:
        # `replace` adds it, if it is not there.
        _ip("address", "replace", family.service, "dev", "lo", *_AT_ONCE)
        _ip("address", "replace", _in_network(family, family.gateway), "dev", _SWITCH, *_AT_ONCE)


def plug_in(name: str, number: int, families: Sequence[Family]) -> None:
    """Make the network of a node, and connect it to the switch."""
    cable = f"cable{number}"
    _ip("netns", "add", name)
    _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", cable, "master", _SWITCH, "up")
    inside = ("-n", name)
    _ip(*inside, "link", "set", "lo", "up")
    _ip(*inside, "link", "set", "eth0", "up")
    _run(*into(name), "/bin/sh", "-c", _FORWARD)
    for family in families:
        _ip(*inside, "address", "add", _in_network(family, family.node(number)), "dev", "eth0", *_AT_ONCE)
        _ip(*inside, "route", "add", "default", "via", family.gateway)
        _ip("route", "replace", family.pods_of(number), "via", family.node(number))


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


_FORWARD = (
    "echo 1 > /proc/sys/net/ipv4/ip_forward;"
    " [ ! -e /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
)

_AT_ONCE = ("nodad",)
"""An address of IPv6 is used without a look for others that have it; for one of IPv4 it means nothing."""


def _in_network(family: Family, address: str) -> str:
    return f"{address}/{ip_network(family.nodes).prefixlen}"


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        msg = f"{' '.join(command)}: {done.stderr.strip()}"
        raise RuntimeError(msg)
