"""`reconciler page` shows the page of a Pod that is ready, and of another one once that is gone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.real.passes.processes import Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for

KUBECTL = """#!/usr/bin/env python3
# Forwards as kubectl does, but only says so: the process of the Pod listens on this machine.
import json, pathlib, sys, time
here = pathlib.Path(__file__).parent
name = next(word for word in sys.argv if word.startswith("pod/")).partition("/")[2]
(here / "asked").write_text(" ".join(sys.argv[1:]))
port = json.loads((here / "ports.json").read_text()).get(name)
if port is None:
    sys.exit("error: unable to forward port because pod is not running")
print(f"Forwarding from 127.0.0.1:{port} -> 8080", flush=True)
while json.loads((here / "ports.json").read_text()).get(name) == port:
    time.sleep(0.05)
sys.exit("error: lost connection to pod")
"""
NAMESPACE = "node-maintenance"
LABELS = {"app.kubernetes.io/name": "node-maintenance-reconciler", "app.kubernetes.io/component": "serve"}


class Pods:
    """Pods of `serve` that are ready, and the fake kubectl that knows where each of them listens."""

    def __init__(self, scene: Scene, programs: Programs, folder: Path) -> None:
        self._scene, self._programs, self.folder = scene, programs, folder
        self._ports: dict[str, int] = {}
        program = folder / "kubectl"
        program.write_text(KUBECTL, encoding="utf-8")
        program.chmod(0o755)
        if scene.api.find("namespaces", NAMESPACE) is None:
            scene.api.create_namespace(NAMESPACE)
        self._write()

    def start(self, name: str) -> Running:
        """Start `serve` in the name of a Pod that is ready."""
        pod = {"POD_NAME": name, "POD_NAMESPACE": NAMESPACE}
        process = self._programs.start("serve", "--every", "1s", "--listen", "127.0.0.1:0", pod=pod)
        (line,) = process.wait_for("listening")
        self._ports[name] = int(line["address"].rpartition(":")[2])
        self._write()
        container = {
            "name": "reconciler",
            "image": "reconciler",
            "ports": [{"name": "http", "containerPort": 8080}],
        }
        made: dict[str, Any] = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": LABELS},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        }
        self._scene.api.create("pods", made)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self._scene.api.patch("pods", name, {"status": ready}, NAMESPACE, subresource="status")
        return process

    def port(self, name: str) -> int:
        """Return where a Pod listens."""
        return self._ports[name]

    def end(self, name: str, process: Running) -> None:
        """Take a Pod away."""
        process.kill()
        del self._ports[name]
        self._write()
        self._scene.api.delete("pods", name, NAMESPACE, grace=0)

    def _write(self) -> None:
        fresh = self.folder / "fresh.json"
        fresh.write_text(json.dumps(self._ports), encoding="utf-8")
        fresh.rename(self.folder / "ports.json")


def headers(address: str) -> dict[str, str]:
    """Those that are about the page, and not about its transfer."""
    answer = urllib3.request("GET", address, retries=False, timeout=60)
    return {name: value for name, value in answer.headers.items() if name != "Content-Length"}


def get(address: str, query: str = "") -> tuple[int, str]:
    answer = urllib3.request("GET", f"{address}{query}", retries=False, timeout=60)
    return answer.status, answer.data.decode()


def test_the_page_stays_at_its_address_when_its_pod_is_gone(
    scene: Scene, programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    node = scene.node()
    pods = Pods(scene, programs, tmp_path)
    none = programs.run("page", "--no-browser", "--port", "0")
    assert (none.code, "no Pod of the reconciler is ready" in none.err) == (1, True)

    first = pods.start("reconciler-b")
    first.wait_for("leading")
    standby = pods.start("reconciler-a")
    standby.wait_for("standing by")
    shows = programs.start("page", "--no-browser", "--port", "0")
    wait_for("its address", lambda: "http://127.0.0.1:" in shows.everything())
    address = f"http://{shows.everything().partition('http://')[2].split()[0]}"
    assert "The page is that of Pod reconciler-b." in shows.everything()
    wait_for("the page", lambda: get(address)[0] == 200)
    status, text = get(address, f"?q={node}&refresh=off")
    assert (status, f'value="{node}"' in text) == (200, True)
    assert headers(address) == headers(f"http://127.0.0.1:{pods.port('reconciler-b')}/")
    assert "port-forward pod/reconciler-b :8080 --address 127.0.0.1" in (tmp_path / "asked").read_text()

    # kubectl goes on, and the Pod is still ready and holds the lock: only a request shows that it is gone.
    first.kill()
    get(address)
    assert "The page is that of Pod reconciler-a." in shows.everything()
    pods.end("reconciler-b", first)
    wait_for("the other page", lambda: get(address)[0] == 200, seconds=60)
    assert node in get(address)[1]

    pods.end("reconciler-a", standby)
    status, text = get(address)
    assert (status, "tries again by itself" in text) == (503, True)
    assert shows.terminate().code == 0
