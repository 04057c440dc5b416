"""Starts and stops etcd, the API server, controller manager, scheduler and kwok on loopback."""

import atexit
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import urllib3

from tests.support.controlplane.api import Api
from tests.support.controlplane.audit import AuditEntry, log_size, read_audit_log
from tests.support.controlplane.binaries import Binaries, find_binaries
from tests.support.controlplane.cleaning import clean, first_keys
from tests.support.controlplane.configuration import (
    AUDIT_POLICY,
    AUDIT_POLICY_OF_NODES,
    IPV4,
    KWOK_NODE,
    Certificates,
    Family,
    in_url,
    kwok_configuration,
    make_certificates,
    write_kubeconfig,
)
from tests.support.controlplane.processes import MOST_AT_ONCE, Etcd, Processes, alive, free_ports, wait_for

_FOLDER = "node-maintenance-controlplane"
_CLIENTS = ("kube-controller-manager", "kube-scheduler", "kwok")


class ControlPlane:
    """A control plane of its own for as long as the `with` lasts.

    Args:
        ready_after: seconds until a pod on a simulated node is Ready; its annotation `test/ready-after` (a
            duration as Go writes it, such as 300ms) beats it.
        deleted_after: seconds until a deleted pod is gone; its annotation `test/deleted-after` beats it. It
            stays while it has finalizers or the label `test/stuck-terminating: "true"`.
        empties_namespaces: whether what is in a deleted namespace is deleted, and the namespace after it.
        cores: how many cores each of its programs may use at a time, None for all. Where several control
            planes share a machine, one core each costs a sixth less CPU time.
        nodes: names of nodes with kubelets, for which `kubeconfig_of` has identities. Nothing is simulated
            then: a controller watches these nodes, and the API server has the address of the Service
            `kubernetes`, which this network namespace must have.
        families: the addresses of Services, those that Pods prefer first.
    """

    url: str
    kubeconfig: Path
    audit_log: Path
    kubectl: Path
    folder: Path
    api: Api  # as admin
    given_binaries: Path | None  # the folder of the API server, where that is not ours

    def __init__(
        self,
        *,
        ready_after: float = 0.2,
        deleted_after: float = 0.5,
        empties_namespaces: bool = True,
        cores: int | None = None,
        nodes: Collection[str] = (),
        families: Sequence[Family] = (IPV4,),
    ) -> None:
        self._ready_after = ready_after
        self._deleted_after = deleted_after
        self._empties_namespaces = empties_namespaces
        self._cores = cores
        self._nodes = tuple(nodes)
        self._families = tuple(families)
        self._clients = tuple(name for name in _CLIENTS if not (nodes and name == "kwok"))
        self._started = False
        self._log_began = 0
        self._cleaned = datetime.min.replace(tzinfo=UTC)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when pods would be scheduled; NoControlPlane if there are no binaries."""
        self._binaries: Binaries = find_binaries()
        self.kubectl = self._binaries.paths["kubectl"]
        self.given_binaries = self._binaries.given
        remove_stale_folders()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}-{os.getpid()}-"))
        self._folder_lock = lock_folder(self.folder)
        self.audit_log = self.folder / "audit.log"
        # Go's threads look for work on every core that they may use, whether or not there is any.
        cores = {} if self._cores is None else {"GOMAXPROCS": str(self._cores)}
        self._processes = Processes(self.folder, cores)
        self._started = True
        # Also if nothing leaves the `with`, when the interpreter exits normally.
        atexit.register(self.stop)
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all processes and remove all files; again is no harm."""
        if not self._started:
            return
        self._started = False
        atexit.unregister(self.stop)
        self._processes.close()
        if hasattr(self, "_probe"):
            self._probe.clear()
        if hasattr(self, "api"):
            self.api.close()
        if hasattr(self, "objects"):
            self.objects.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._folder_lock)

    def stop_apiserver(self) -> None:
        """As if its machine were gone, with the controllers that run there; etcd goes on."""
        self._processes.stop("kube-apiserver", *self._clients)

    def start_apiserver(self) -> None:
        """On the same port, with the same data; returns when it is ready. One that runs is left alone.

        The controllers start with it. Those that go on during an outage ask less and less often, and would
        notice its end only many seconds later.
        """
        if not self._processes.running("kube-apiserver"):
            self._processes.stop("kube-apiserver", *self._clients)
            self._processes.start("kube-apiserver", self._apiserver_command())
        self._await_healthy("kube-apiserver", self.url + "/readyz")
        if not all(self._processes.running(name) for name in self._clients):
            self._start_clients()

    def keep(self) -> None:
        """Keep a copy of all objects, to which `restore` goes back. The API server is away for a moment."""
        self._processes.stop("etcd")
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self._data, self._kept)
        self._start_etcd()
        self.start_apiserver()

    def restore(self) -> None:
        """Go back to what `keep` has kept, with its resourceVersions; returns when the server is ready."""
        self.stop_apiserver()
        self._processes.stop("etcd")
        shutil.rmtree(self._data)
        shutil.copytree(self._kept, self._data)
        self._start_etcd()
        self.start_apiserver()

    def clean(self) -> None:
        """Delete everything that was created since the start; TimeoutError if something comes back.

        `audit_entries` then begin here.
        """
        clean(self.api, self.objects, self._first)
        self._log_began, self._cleaned = log_size(self.audit_log), datetime.now(UTC)

    def pids(self) -> dict[str, int]:
        """The process id of each program."""
        return {name: self._processes.pid(name) for name in self._processes.names()}

    def kubeconfig_for(self, service_account: str, namespace: str = "default") -> Path:
        """For a ServiceAccount that exists, with a fresh token of an hour."""
        token_request = {"spec": {"expirationSeconds": 3600}}
        path = f"api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        token = self.api.request("POST", path, token_request)["status"]["token"]
        return self._write_kubeconfig(f"{namespace}-{service_account}", token, namespace)

    def kubeconfig_of(self, node: str) -> Path:
        """For the kubelet of one of `nodes`."""
        return self.folder / f"{node}.kubeconfig"

    def audit_entries(
        self,
        user_agent: str | None = None,
        verbs: Collection[str] | None = None,
        since: datetime | None = None,
    ) -> list[AuditEntry]:
        """Requests since the last cleaning, of agents whose name contains the text, of these verbs.

        One that began before it, such as the watch of a process that was killed, is of an earlier test.
        """
        since = max(since or self._cleaned, self._cleaned)
        return read_audit_log(
            self.audit_log, user_agent=user_agent, verbs=verbs, since=since, offset=self._log_began
        )

    def _start_all(self) -> None:
        self._etcd, self._etcd_peer, self._port, *others = free_ports(3 + len(self._clients))
        self._client_ports = dict(zip(self._clients, others, strict=True))
        self.objects = Etcd(f"http://127.0.0.1:{self._etcd}")
        self._address = "127.0.0.1"
        if self._nodes:
            # Pods know no other port.
            self._address, self._port = self._families[0].service, 443
        self.url = f"https://{in_url(self._address)}:{self._port}"
        self._data, self._kept = self.folder / "etcd", self.folder / "kept"
        self._processes.start("etcd", self._etcd_command())
        self._certificates: Certificates = make_certificates(self.folder)
        self._probe = urllib3.PoolManager(
            ca_certs=str(self._certificates.authority), retries=False, timeout=2
        )
        self._write_files()
        self._await_etcd()
        self.start_apiserver()
        self._first = first_keys(self.objects)

    def _start_etcd(self) -> None:
        self._processes.start("etcd", self._etcd_command())
        self._await_etcd()

    def _await_etcd(self) -> None:
        self._await_healthy("etcd", f"http://127.0.0.1:{self._etcd}/readyz")

    def _start_clients(self) -> None:
        """Start what works through the API server; returns when all of it is healthy."""
        commands = {
            "kube-controller-manager": self._controllers_command,
            "kube-scheduler": self._scheduler_command,
            "kwok": self._kwok_command,
        }
        for name, port in self._client_ports.items():
            self._processes.stop(name)
            self._processes.start(name, commands[name](port))
        for name, port in self._client_ports.items():
            scheme = "http" if name == "kwok" else "https"
            path = "readyz" if name == "kube-scheduler" else "healthz"
            self._await_healthy(name, f"{scheme}://127.0.0.1:{port}/{path}")

    def _write_files(self) -> None:
        self._tokens = {user: secrets.token_urlsafe(24) for user in ("admin", *self._clients, *self._nodes)}
        # Each by its own name in the audit log. All have every right, because what they may do is not what we
        # test, but nodes are who they are in every cluster: a policy of ours is about them.
        lines = [
            f'{token},system:node:{user},{user},"system:nodes"\n'
            if user in self._nodes
            else f'{token},{user},{user},"system:masters"\n'
            for user, token in self._tokens.items()
        ]
        (self.folder / "tokens.csv").write_text("".join(lines), encoding="utf-8")
        policy = AUDIT_POLICY_OF_NODES if self._nodes else AUDIT_POLICY
        (self.folder / "audit.yaml").write_text(policy, encoding="utf-8")
        (self.folder / "kwok.yaml").write_text(
            kwok_configuration(ready_after=self._ready_after, deleted_after=self._deleted_after),
            encoding="utf-8",
        )
        paths = {user: self._write_kubeconfig(user, token) for user, token in self._tokens.items()}
        self.kubeconfig = paths["admin"]
        self.api = Api(self.kubeconfig, user_agent="tests-controlplane")

    def _write_kubeconfig(self, user: str, token: str, namespace: str = "default") -> Path:
        return write_kubeconfig(
            self.folder / f"{user}.kubeconfig",
            url=self.url,
            authority=self._certificates.authority,
            user=user,
            token=token,
            namespace=namespace,
        )

    def _await_healthy(self, name: str, url: str) -> None:
        headers = {"Authorization": f"Bearer {self._tokens['admin']}"}

        def healthy() -> bool:
            if not self._processes.running(name):
                last = (
                    self._processes.log(name).read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
                )
                msg = f"{name} ended: " + " | ".join(last)
                raise RuntimeError(msg)
            try:
                return self._probe.request("GET", url, headers=headers).status == 200
            except urllib3.exceptions.HTTPError:
                return False

        wait_for(f"answer of {name} at {url}", healthy, seconds=60)

    def _etcd_command(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._etcd_peer}"
        return [
            self._binaries["etcd"],
            f"--data-dir={self._data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            # Cleaning deletes thousands of Events in one transaction.
            f"--max-txn-ops={MOST_AT_ONCE}",
            # 5,000 nodes of 25 KB, rewritten between two compactions, are soon more than the usual 2 GB.
            f"--quota-backend-bytes={8 << 30}",
            "--log-level=warn",
        ]

    def _apiserver_command(self) -> list[str]:
        certificates = self._certificates
        return [
            self._binaries["kube-apiserver"],
            f"--etcd-servers=http://127.0.0.1:{self._etcd}",
            f"--bind-address={self._address}",
            f"--advertise-address={self._address}",
            f"--secure-port={self._port}",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={certificates.serving}",
            f"--tls-private-key-file={certificates.serving_key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            # As on every managed cluster: a node may write itself only.
            "--enable-admission-plugins=NodeRestriction",
            f"--service-account-key-file={certificates.service_account_key}",
            f"--service-account-signing-key-file={certificates.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={','.join(family.services for family in self._families)}",
            "--allow-privileged",
            f"--audit-policy-file={self.folder / 'audit.yaml'}",
            f"--audit-log-path={self.audit_log}",
            "--max-requests-inflight=800",
            "--max-mutating-requests-inflight=800",
            "--delete-collection-workers=8",
            "--profiling=false",
            # It taints every new node as not ready, and only the controller that is off would take that away.
            *([] if self._nodes else ["--disable-admission-plugins=TaintNodesByCondition"]),
            # It asks them for logs and forwarded ports, and no DNS server knows their names.
            *(["--kubelet-preferred-address-types=InternalIP"] if self._nodes else []),
        ]

    def _controllers_command(self, port: int) -> list[str]:
        return [
            self._binaries["kube-controller-manager"],
            *self._component_flags("kube-controller-manager", port),
            f"--root-ca-file={self._certificates.authority}",
            f"--service-account-private-key-file={self._certificates.service_account_key}",
            "--controllers=" + ",".join(self._controllers()),
            "--kube-api-qps=2000",
            "--kube-api-burst=4000",
            # A node is NotReady within 20 seconds instead of 50, so that tests need not wait for it.
            "--node-monitor-grace-period=20s",
            "--node-monitor-period=2s",
        ]

    def _controllers(self) -> list[str]:
        # ttl-controller annotates every node whenever there are some hundreds more of them, and tests say
        # themselves which node is Ready.
        chosen = ["*", "-ttl-controller"]
        if not self._nodes:
            chosen.append("-node-lifecycle-controller")
        if not self._empties_namespaces:
            chosen.append("-namespace-controller")
        return chosen

    def _scheduler_command(self, port: int) -> list[str]:
        return [
            self._binaries["kube-scheduler"],
            *self._component_flags("kube-scheduler", port),
            "--kube-api-qps=2000",
            "--kube-api-burst=4000",
        ]

    def _component_flags(self, name: str, port: int) -> list[str]:
        kubeconfig = self.folder / f"{name}.kubeconfig"
        return [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={self._certificates.serving}",
            f"--tls-private-key-file={self._certificates.serving_key}",
            "--leader-elect=false",
            "--profiling=false",
        ]

    def _kwok_command(self, port: int) -> list[str]:
        return [
            self._binaries["kwok"],
            f"--config={self.folder / 'kwok.yaml'}",
            f"--kubeconfig={self.folder / 'kwok.kubeconfig'}",
            f"--manage-nodes-with-annotation-selector={'='.join(KWOK_NODE)}",
            f"--server-address=127.0.0.1:{port}",
            # Leases are the heartbeat that the node-lifecycle-controller looks for.
            "--node-lease-duration-seconds=0",
        ]


def remove_stale_folders() -> None:
    """Of owners that were killed: their processes died with them, their files did not."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}-*"):
        owner = re.match(rf"{_FOLDER}-(\d+)-", folder.name)
        if owner and not alive(int(owner[1])):
            # A container sees only its own processes, but every lock.
            try:
                os.close(lock_folder(folder))
            except OSError:
                continue
            shutil.rmtree(folder, ignore_errors=True)


def lock_folder(folder: Path) -> int:
    """Lock a folder until what this returns is closed, or this process ends; OSError if another has it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
