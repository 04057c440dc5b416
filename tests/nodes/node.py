"""A node: containerd, runc and a kubelet in a network of its own, which can lose power, and come back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import yaml

from tests.nodes import cgroups, network
from tests.nodes.requirements import plugins
from tests.nodes.workloads import PAUSE
from tests.support.controlplane.configuration import Family
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import Processes, wait_for

Value = TypeVar("Value")

POOL = Pool("np")


class Node:
    """One machine of a run.

    Its folder `disk` stays when it loses power, and `memory` does not.
    """

    def __init__(
        self, number: int, folder: Path, kubelet: Path, images: Sequence[Path], families: Sequence[Family]
    ) -> None:
        """Prepare a node, of any number from 1; `images` are archives that it has from its first start."""
        self.number = number
        self.name = POOL.node_name(number)
        self._families = families
        self._addresses = [family.node(number) for family in families]
        self.folder = folder / f"node{number}"
        self._disk, self._memory = self.folder / "disk", self.folder / "memory"
        self._kubelet, self._images = kubelet, images
        self._group = f"{folder.name}/{self.folder.name}"
        self._socket = self._memory / "containerd.sock"
        self._boot_id = self.folder / "boot_id"
        self._frozen = False
        for each in (self._disk, self._memory):
            each.mkdir(parents=True, exist_ok=True)
        for group in (self._group, f"{self._group}/system"):
            cgroups.make(group)
        self._processes = Processes(self.folder)

    @property
    def runs(self) -> bool:
        """Whether its kubelet runs."""
        return self._processes.running("kubelet")

    def start(self, kubeconfig: Path) -> None:
        """Boot: with a new boot ID, with what is on its disk, and without what was in its memory."""
        self._kubeconfig = kubeconfig
        self._boot_id.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        network.plug_in(self.folder.name, self.number, self._families)
        self._memory.mkdir(exist_ok=True)
        for name, document in self._files().items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(document, encoding="utf-8")
        self._start("containerd", ["containerd", f"--config={self.folder / 'containerd.toml'}"])
        self._await("containerd", lambda: self._ctr("version").returncode == 0)
        imported = self._disk / "imported"
        if not imported.exists():
            for image in self._images:
                self.add_image(image)
            imported.touch()
        self.start_kubelet()

    def start_kubelet(self) -> None:
        """Start the kubelet alone; return when it is healthy."""
        command = [
            str(self._kubelet),
            f"--config={self.folder / 'kubelet.yaml'}",
            f"--kubeconfig={self._kubeconfig}",
            f"--root-dir={self._disk / 'kubelet'}",
            f"--hostname-override={self.name}",
            f"--node-ip={','.join(self._addresses)}",
            f"--node-labels=agentpool={POOL.name},topology.kubernetes.io/zone=westeurope-{self.number}",
            f"--boot-id-file={self._boot_id}",
        ]
        health = ["/bin/busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:10248/healthz"]

        def healthy() -> bool:
            # As systemd does: it ends if containerd answers, but its CRI plugin is not ready yet.
            if not self._processes.running("kubelet"):
                self._start("kubelet", command)
            return self.run(*health, check=False).stdout == "ok"

        self._await("kubelet", healthy)

    def kill(self, *programs: str) -> None:
        """Take the power away, or end these programs alone by force: `kubelet`, `containerd`."""
        if programs:
            self._processes.stop(*programs)
            return
        # Before the processes, so that no last packet says that they end.
        network.cut(self.number)
        cgroups.kill(self._group)
        self._processes.stop(*self._processes.names())
        self._unmount()
        network.remove(self.folder.name)
        subprocess.run(["rm", "-rf", "--one-file-system", str(self._memory)], check=True)
        self._frozen = False

    def freeze(self) -> None:
        """Let nothing of it go on, as while the host moves its VM; it answers no packet."""
        network.connect(self.number, connected=False)
        cgroups.freeze(self._group, frozen=True)
        self._frozen = True

    def thaw(self) -> None:
        """Let it go on as if nothing had happened."""
        cgroups.freeze(self._group, frozen=False)
        network.connect(self.number, connected=True)
        self._frozen = False

    @property
    def frozen(self) -> bool:
        """Whether it is frozen now."""
        return self._frozen

    def add_image(self, archive: Path) -> None:
        """Load an image, so that no Pod has to pull it."""
        done = self._ctr("images", "import", str(archive))
        if done.returncode:
            msg = f"{self.name} can't load {archive}: {done.stderr.strip()}"
            raise RuntimeError(msg)

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in its network."""
        return subprocess.run(
            [*network.into(self.folder.name), *command], capture_output=True, encoding="utf-8", check=check
        )

    def within(self, make: Callable[[], Value]) -> Value:
        """Make something with sockets in its network; close it before the node loses power."""
        return network.within(self.folder.name, make)

    def send(self, pod_uid: str, what: signal.Signals) -> None:
        """Send a signal to all processes of a Pod."""
        (group,) = cgroups.below(f"{self._group}/kubepods", f"pod{pod_uid}")
        for process in cgroups.processes(group):
            os.kill(process, what)

    def usage(self, pod_uid: str) -> cgroups.Usage:
        """Return what a Pod uses, by its control group."""
        return cgroups.usage(f"{self._group}/kubepods", f"pod{pod_uid}")

    def _ctr(self, *command: str) -> subprocess.CompletedProcess[str]:
        address = ["ctr", "--address", str(self._socket), "--namespace", "k8s.io"]
        return subprocess.run([*address, *command], capture_output=True, encoding="utf-8", check=False)

    def _start(self, name: str, command: Sequence[str]) -> None:
        files = " ".join(str(file) for file in cgroups.files_to_join(f"{self._group}/system"))
        join = f'for file in {files}; do echo $$ > "$file" || exit 1; done; exec "$@"'
        self._processes.start(name, [*network.into(self.folder.name), "/bin/sh", "-c", join, "sh", *command])

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        def last_lines() -> str:
            lines = self._processes.log(name).read_text(encoding="utf-8", errors="replace").splitlines()
            return f"its log ends with {' | '.join(lines[-5:])}"

        wait_for(f"{name} of {self.name}", ready, seconds=120, every=0.1, instead=last_lines)

    def _unmount(self) -> None:
        """Unmount all that containers and volumes have mounted, the last first."""
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        places = [line.split()[4] for line in mounts]
        for place in reversed([each for each in places if each.startswith(f"{self.folder}/")]):
            subprocess.run(["umount", "--lazy", place], check=False)

    def _files(self) -> dict[str, str]:
        bridge = {
            "type": "bridge",
            "bridge": "pods",
            "isGateway": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": family.pods_of(self.number)}] for family in self._families],
                "routes": [{"dst": family.everywhere} for family in self._families],
                "dataDir": str(self._memory / "addresses"),
            },
        }
        cni = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
        return {
            "cni/pods.conflist": json.dumps(cni),
            "containerd.toml": self._containerd(),
            "kubelet.yaml": yaml.safe_dump(self._kubelet_configuration()),
        }

    def _containerd(self) -> str:
        cri = 'plugins."io.containerd.grpc.v1.cri"'
        return f"""\
version = 2
root = "{self._disk / "containerd"}"
state = "{self._memory / "containerd"}"
oom_score = 0
[grpc]
address = "{self._socket}"
[{cri}]
sandbox_image = "{PAUSE}"
# Without CAP_SYS_RESOURCE, nobody may protect a process from the kernel's search for memory.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
# It would load a profile into the kernel, which is the whole machine's.
disable_apparmor = true
[{cri}.cni]
bin_dir = "{plugins()}"
conf_dir = "{self.folder / "cni"}"
[{cri}.containerd]
snapshotter = "overlayfs"
"""

    def _kubelet_configuration(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._group}",
            "failCgroupV1": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            # It ends if it had to set something in the kernel, which is the whole machine's.
            "protectKernelDefaults": True,
            "makeIPTablesUtilChains": False,
            "address": self._addresses[0],
            "healthzBindAddress": "127.0.0.1",
            "providerID": POOL.provider_id(self.number),
            "podLogsDir": str(self._disk / "pods"),
            "volumePluginDir": str(self._disk / "plugins"),
            "resolvConf": "",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            # The disk is the machine's, and so are its other users.
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "nodeStatusUpdateFrequency": "2s",
            "nodeLeaseDurationSeconds": 20,
            # Changes of the settings, which are a ConfigMap, arrive sooner than after a minute.
            "syncFrequency": "5s",
            "kubeAPIQPS": 50,
            "kubeAPIBurst": 100,
        }
