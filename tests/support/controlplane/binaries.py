"""Where the programs come from: a given folder, a cache, or a build from pinned Go modules."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "build"

# Other versions of Kubernetes, by their minors. `nox -s versions` names one in this variable.
MINORS = Path(__file__).parent / "minors"
CHOSEN = "CONTROLPLANE_KUBERNETES"

# What a node runs. Only `nox -s nodes` needs it, so an ordinary test run does not build it.
NODES = Path(__file__).parent / "nodes"
ON_NODES = ("kubelet", "kube-proxy")

USUAL_FOLDER = Path("/usr/local/kubebuilder/bin")
GO = ("go", "/usr/local/go/bin/go")  # the second is where Go's own archive is unpacked

# Which module each is built from, and the package in it.
PACKAGES = {
    "etcd": ("etcd", "."),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": ("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
}


class NoControlPlane(Exception):
    """No binaries here and no way to build them; the message is one line for a person."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The path of each program."""

    paths: Mapping[str, Path]
    given: Path | None  # the folder of another's choice that holds the API server; None: ours, of our version

    def __getitem__(self, name: str) -> str:
        return str(self.paths[name])


def kubernetes_version() -> str:
    """The version that we build, such as v1.36.3."""
    return version_of(_module_folder("kube-apiserver"))


def version_of(module: Path) -> str:
    """The version of Kubernetes that a folder with a go.mod builds; ValueError if it names none."""
    found = re.search(r"k8s\.io/kubernetes (v\S+)", (module / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        msg = "go.mod names no version of k8s.io/kubernetes"
        raise ValueError(msg)
    return found[1]


def find_binaries() -> Binaries:
    """All programs, built where there is no other way (minutes); NoControlPlane if that is impossible."""
    chosen = os.environ.get(CHOSEN)
    if chosen and not (MINORS / chosen / "go.mod").is_file():
        msg = f"no control plane: {CHOSEN} is {chosen}, and {MINORS} has no such folder"
        raise NoControlPlane(msg)
    given = None if chosen else _given_folder()
    paths: dict[str, Path] = {}
    if given is not None:
        # envtest's usual folder has etcd, kube-apiserver and kubectl only: the rest is ours.
        paths = {name: given / name for name in PACKAGES if _is_program(given / name)}
    ours = {name: _cache_folder(name) / name for name in PACKAGES if name not in paths}
    for cache in dict.fromkeys(path.parent for path in ours.values()):
        wanted = [name for name, path in ours.items() if path.parent == cache]
        if not all(_is_program(cache / name) for name in wanted):
            _build(wanted, cache)
    return Binaries({**ours, **paths}, given)


def find_node_binaries() -> Mapping[str, Path]:
    """kubelet and kube-proxy of our version, built where they are missing; NoControlPlane if that fails."""
    cache = _cache(NODES, NODES.glob("*"))
    if not all(_is_program(cache / name) for name in ON_NODES):
        _build(list(ON_NODES), cache)
    return {name: cache / name for name in ON_NODES}


def _given_folder() -> Path | None:
    for folder in (os.environ.get("KUBEBUILDER_ASSETS"), USUAL_FOLDER):
        if folder and all(_is_program(Path(folder) / name) for name in ("kube-apiserver", "etcd")):
            return Path(folder).resolve()
    return None


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _module_folder(name: str) -> Path:
    if name in ON_NODES:
        return NODES
    chosen, module = os.environ.get(CHOSEN), PACKAGES[name][0]
    return MINORS / chosen if chosen and module == "kubernetes" else MODULES / module


def _cache_folder(name: str) -> Path:
    module = _module_folder(name)
    if module.parent == MINORS:
        return _cache(MINORS, module.glob("*"))
    return _cache(MODULES, MODULES.glob("*/*"))


def _cache(root: Path, sources: Iterable[Path]) -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256()
    for source in sorted(sources):
        if source.name in ("go.mod", "go.sum", "main.go"):
            digest.update(f"{source.relative_to(root)}\0".encode() + source.read_bytes())
    return home / "node-maintenance-reconciler" / "controlplane" / digest.hexdigest()[:16]


def _build(names: list[str], cache: Path) -> None:
    go = next(filter(None, map(shutil.which, GO)), None)
    if go is None:
        msg = (
            "no control plane: KUBEBUILDER_ASSETS has no kube-apiserver and etcd,"
            f" {cache} is not complete, and there is no Go toolchain to build it"
        )
        raise NoControlPlane(msg)
    cache.mkdir(parents=True, exist_ok=True)
    with _lock(cache / "lock"):
        # Another process may have built them while we waited for the lock.
        missing = [name for name in names if not _is_program(cache / name)]
        if missing:
            _say(f"building {', '.join(missing)} (once, some minutes) into {cache}")
        for name in missing:
            began = time.monotonic()
            _build_one(go, name, cache)
            _say(f"built {name} in {time.monotonic() - began:.0f} s")


def _build_one(go: str, name: str, cache: Path) -> None:
    package = f"k8s.io/kubernetes/cmd/{name}" if name in ON_NODES else PACKAGES[name][1]
    with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as folder:
        made = Path(folder) / name
        flags = ["-trimpath", "-buildvcs=false", "-ldflags", _link_flags()]
        command = [go, "build", *flags, "-o", str(made), package]
        environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
        done = subprocess.run(
            command,
            cwd=_module_folder(name),
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            msg = f"no control plane: building {name} failed: {why}"
            raise NoControlPlane(msg)
        made.rename(cache / name)


def _link_flags() -> str:
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    # Without these a server from a plain build calls itself v0.0.0.
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    stamped = (f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamps.items())
    return " ".join(["-s -w", *stamped])


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting for another build: {path}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    print(f"controlplane: {line}", file=sys.stderr, flush=True)
