"""The image of the tests' own workloads, and what they write down about themselves.

It is made from scratch with a static busybox and one script. A container of it writes a line for its start,
some lines a second while it lives, one for SIGTERM, for begin and end of its preStop hook, and for its end. A
Pod that is killed can't write that, but its last line says until when it lived.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Object = dict[str, Any]

IMAGE = "localhost/workload:1"
PAUSE = "localhost/pause:1"
RECORDS = "/records"
"""Where Pods write what they record."""

RECORDS_ON_NODES = "/run/records"
"""The same folder on the nodes, which share it."""

BEAT = 0.2
"""Seconds between two signs of life."""

# The uptime has hundredths of a second, and the same origin in every container.
_RECORDER = f"""\
#!/bin/sh
# recorder run SECONDS: live until SIGTERM, and so long after it; recorder hook SECONDS: a preStop hook.
file={RECORDS}/$NAMESPACE.$POD.$UID
say() {{ read -r up _ < /proc/uptime; echo "$up $*" >> "$file"; }}
if [ "$1" = hook ]; then
  say prestop-begin; sleep "$2"; say prestop-end
  exit 0
fi
ending=
trap 'say sigterm; ending=yes' TERM
say start "$NODE" "$(hostname)"
[ "$3" = serve ] && httpd -p 8080 -h /www
left="$2"
while :; do
  say alive
  sleep {BEAT} & wait $!
  if [ -n "$ending" ]; then
    case "$left" in 0) say end; exit 0;; esac
    until_=$((left * 5))
    while [ "$until_" -gt 0 ]; do sleep {BEAT}; say alive; until_=$((until_ - 1)); done
    say end; exit 0
  fi
done
"""


def write_images(folder: Path) -> list[Path]:
    """Write the archives of the images of workloads and of sandboxes, as `docker save` does."""
    program = shutil.which("busybox")
    assert program is not None
    busybox = Path(program).resolve().read_bytes()
    pause = ["/bin/busybox", "sleep", "1000000000"]
    return [
        _write(folder / "workload.tar", IMAGE, busybox, ["/bin/recorder", "run", "0"]),
        _write(folder / "pause.tar", PAUSE, busybox, pause),
    ]


def _write(path: Path, name: str, busybox: bytes, entrypoint: list[str]) -> Path:
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as files:
        for folder in ("bin", "tmp", "www", "records", "proc", "dev", "sys", "etc"):
            _add(files, folder, mode=0o1777 if folder == "tmp" else 0o755, kind=tarfile.DIRTYPE)
        _add(files, "bin/busybox", busybox, mode=0o755)
        _add(files, "bin/recorder", _RECORDER.encode(), mode=0o755)
        _add(files, "www/index.html", b"ok\n")
        for applet in ("sh", "sleep", "httpd", "hostname", "cat", "wget", "echo"):
            _add(files, f"bin/{applet}", kind=tarfile.SYMTYPE, target="busybox")
    content = layer.getvalue()
    configuration = {
        "architecture": _architecture(),
        "os": "linux",
        "config": {"Entrypoint": entrypoint, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
    }
    text = json.dumps(configuration).encode()
    digest = hashlib.sha256(text).hexdigest()
    manifest = [{"Config": f"{digest}.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as archive:
        for file, data in (
            ("layer.tar", content),
            (f"{digest}.json", text),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            _add(archive, file, data)
    return path


def _add(
    archive: tarfile.TarFile,
    name: str,
    content: bytes = b"",
    *,
    mode: int = 0o644,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname, entry.size = kind, mode, target, len(content)
    archive.addfile(entry, io.BytesIO(content))


def _architecture() -> str:
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def pod_spec(
    *, grace: int = 30, ends_after: int = 0, hook: int | None = None, serves: bool = False, **more: Any
) -> Object:
    """Return the spec of a Pod that records its life.

    Args:
        grace: its grace period, in seconds.
        ends_after: how many seconds it goes on after SIGTERM.
        hook: how many seconds its preStop hook takes; None for no hook.
        serves: whether it answers on port 8080, and is Ready by that.
        more: other fields.
    """
    values = {"POD": "metadata.name", "NAMESPACE": "metadata.namespace", "UID": "metadata.uid"}
    values["NODE"] = "spec.nodeName"
    container: Object = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/bin/recorder", "run", str(ends_after), "serve" if serves else "silent"],
        "env": [
            {"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in values.items()
        ],
        "volumeMounts": [{"name": "records", "mountPath": RECORDS}],
    }
    if serves:
        container["readinessProbe"] = {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1}
    if hook is not None:
        container["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/recorder", "hook", str(hook)]}}}
    volumes = [{"name": "records", "hostPath": {"path": RECORDS_ON_NODES}}, *more.pop("volumes", [])]
    return {"terminationGracePeriodSeconds": grace, "containers": [container], "volumes": volumes, **more}


@dataclass(frozen=True, slots=True)
class Life:
    """What a Pod wrote down; moments are seconds since 1970."""

    namespace: str
    pod: str
    uid: str
    node: str
    start: float
    last: float
    """When it last said anything."""
    sigterm: float | None = None
    hook_began: float | None = None
    hook_ended: float | None = None
    end: float | None = None
    """When it ended by itself; None if it was killed, or lives."""
    restarts: tuple[float, ...] = ()
    """When its container started again in the same Pod, as after a reboot."""


def read_records(folder: Path) -> list[Life]:
    """Return the lives of all Pods that wrote something, by their start."""
    # Both clocks go on alike while the machine runs.
    origin = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    lives = []
    for file in folder.iterdir():
        namespace, pod, uid = file.name.rsplit(".", 2)
        moments: dict[str, float] = {}
        restarts: list[float] = []
        node, last = "", 0.0
        for line in file.read_text(encoding="utf-8").splitlines():
            up, _, said = line.partition(" ")
            last = origin + float(up)
            what, _, detail = said.partition(" ")
            if what == "start" and what in moments:
                restarts.append(last)
            # A container that starts again in the same Pod does not hide the first.
            moments.setdefault(what, last)
            node = node or detail.partition(" ")[0]
        lives.append(
            Life(
                namespace,
                pod,
                uid,
                node,
                moments.get("start", last),
                last,
                moments.get("sigterm"),
                moments.get("prestop-begin"),
                moments.get("prestop-end"),
                moments.get("end"),
                tuple(restarts),
            )
        )
    return sorted(lives, key=lambda life: life.start)
