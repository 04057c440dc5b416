"""What this machine lacks for real nodes, and how to install it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.nodes import images

PACKAGES = {
    **images.PROGRAMS,
    "containerd": "containerd",
    "ctr": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "mount": "mount",
    "busybox": "busybox-static",
}
"""Programs, and the Debian packages that have them."""

PLUGINS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
"""Folders that may have the CNI plugins: Debian's, and the usual one."""


def plugins() -> Path | None:
    """Return the folder of the CNI plugins."""
    return next((folder for folder in PLUGINS if (folder / "bridge").exists()), None)


IPV6 = Path("/proc/sys/net/ipv6")
"""What a kernel with IPv6 has."""


def missing(
    path: str | None = None,
    *,
    system: str = sys.platform,
    user: int | None = None,
    ipv6: Collection[str] = (),
) -> list[str]:
    """Return what is missing, each as a sentence with its remedy; nothing if nodes can run here.

    Args:
        path: where programs are, as in the variable PATH.
        system: the operating system.
        user: who runs this.
        ipv6: the scenarios that need IPv6.
    """
    if system != "linux":
        return [f"Real nodes need Linux, and this is {system}. Run it in a virtual machine."]
    sentences = []
    if (os.geteuid() if user is None else user) != 0:
        sentences.append("Namespaces and mounts need root. Run it again with: sudo .venv/bin/nox -s nodes")
    if not Path("/sys/fs/cgroup").is_dir():
        sentences.append("/sys/fs/cgroup is not mounted. Mount the control groups there.")
    if ipv6 and not IPV6.is_dir():
        names = " and ".join(ipv6)
        sentences.append(
            f"This kernel has no IPv6, which {names} need. Run modprobe ipv6, or name the others."
        )
    lacking = {program: name for program, name in PACKAGES.items() if not shutil.which(program, path=path)}
    if (busybox := shutil.which("busybox", path=path)) and not static(Path(busybox)):
        lacking["a static busybox"] = "busybox-static"
    if plugins() is None:
        lacking["the CNI plugins"] = "containernetworking-plugins"
    if lacking:
        sentences.append(_packages(lacking))
    return sentences


def _packages(lacking: Mapping[str, str]) -> str:
    packages = " ".join(dict.fromkeys(lacking.values()))
    install = f"apt-get install --no-install-recommends {packages}"
    return f"Not installed: {', '.join(lacking)}. Install with: {install}"


def static(program: Path) -> bool:
    """Whether a program needs no library: it is to run in an image without one."""
    with program.open("rb") as file:
        return b"/ld-" not in file.read(4096)
