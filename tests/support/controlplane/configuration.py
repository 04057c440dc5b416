"""What the control plane is configured with: certificates, files, and how its nodes and pods behave."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True, slots=True)
class Family:
    """The addresses of a cluster in one version of IP. A network of both has two, the preferred one first."""

    services: str
    nodes: str
    pods: str
    everywhere: str

    @property
    def service(self) -> str:
        """The address of the Service `kubernetes`, which the kubelet gives to each Pod: the first one."""
        return str(ip_network(self.services)[1])

    @property
    def gateway(self) -> str:
        """The address through which a node reaches all others."""
        return str(ip_network(self.nodes)[1])

    def node(self, number: int) -> str:
        """The address of a node."""
        return str(ip_network(self.nodes)[10 + number])

    def pods_of(self, number: int) -> str:
        """The addresses of a node's Pods."""
        return str(next(islice(ip_network(self.pods).subnets(prefixlen_diff=8), number, None)))


IPV4 = Family(services="10.96.0.0/16", nodes="10.0.0.0/24", pods="10.88.0.0/16", everywhere="0.0.0.0/0")
IPV6 = Family(services="fd00:96::/112", nodes="fd00:10::/64", pods="fd00:88::/56", everywhere="::/0")


def in_url(address: str) -> str:
    """Return an address as the host of a URL."""
    return f"[{address}]" if ":" in address else address


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files."""

    authority: Path
    serving: Path
    serving_key: Path
    service_account_key: Path


def make_certificates(folder: Path) -> Certificates:
    """An authority, a serving certificate and the key that signs ServiceAccount tokens."""
    now = datetime.now(UTC)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    serving_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("node-maintenance-reconciler tests")
    key_id = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())

    def draft(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=30))
        )

    authority = (
        draft(authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_id, critical=False)
        .add_extension(_authority_usage(), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = [
        *(x509.IPAddress(ip_address(each)) for each in ("127.0.0.1", IPV4.service, IPV6.service)),
        x509.DNSName("localhost"),
        x509.DNSName("kubernetes.default.svc"),
    ]
    # A client may show the serving certificate, too: tests of client certificates need no second one.
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    serving = (
        draft(_name("127.0.0.1"), serving_key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificates = Certificates(
        authority=folder / "authority.crt",
        serving=folder / "serving.crt",
        serving_key=folder / "serving.key",
        service_account_key=folder / "service-account.key",
    )
    certificates.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    certificates.serving.write_bytes(serving.public_bytes(serialization.Encoding.PEM))
    _write_key(certificates.serving_key, serving_key)
    _write_key(certificates.service_account_key, ec.generate_private_key(ec.SECP256R1()))
    return certificates


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _authority_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )


KWOK_NODE = ("kwok.x-k8s.io/node", "fake")
READY_AFTER = "test/ready-after"  # annotations of a pod: durations as Go writes them, such as 300ms or 1m
DELETED_AFTER = "test/deleted-after"
DONE_AFTER = "test/done-after"  # of a job's pod
STUCK_TERMINATING = "test/stuck-terminating"  # label: "true" keeps a deleted pod terminating

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
# A third of all requests, and no test asks about them.
- level: None
  users: [system:apiserver, kube-controller-manager, kube-scheduler]
- level: Metadata
"""

# Of a cluster with real nodes, where a test asks what the reconciler changed on them.
AUDIT_POLICY_OF_NODES = AUDIT_POLICY.replace(
    "- level: Metadata",
    """\
- level: Request
  verbs: [patch, update]
  resources: [{group: "", resources: [nodes]}]
- level: Metadata""",
)


def write_kubeconfig(
    path: Path, *, url: str, authority: Path, user: str, token: str, namespace: str = "default"
) -> Path:
    """For one user with a bearer token."""
    context = {"cluster": "controlplane", "user": user, "namespace": namespace}
    cluster = {"server": url, "certificate-authority": str(authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "controlplane", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "controlplane", "context": context}],
        "current-context": "controlplane",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def kwok_configuration(*, ready_after: float, deleted_after: float) -> str:
    """Stages for kwok, in seconds; a JSON document is YAML as well."""
    documents = [
        {
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokConfiguration",
            # Without a file these have defaults; with one, what it leaves out is 0.
            "options": {
                "podPlayStageParallelism": 16,
                "nodePlayStageParallelism": 16,
                "nodeLeaseParallelism": 4,
                "podsOnNodeSyncParallelism": 4,
                "enablePodsOnNodeSyncListPager": False,
                "enablePodsOnNodeSyncStreamWatch": True,
            },
        },
        _node_comes_up(),
        _pod_gets_ready(ready_after),
        _job_pod_completes(),
        _pod_is_deleted(deleted_after),
    ]
    return "\n---\n".join(json.dumps(document, indent=1) for document in documents)


def _node_comes_up() -> dict[str, Any]:
    # kwok's own stages make a node Ready again whenever it is not, and its heartbeat replaces the whole list
    # of conditions: Ready=False and VMEventScheduled, set by a test, would not stay. So only a node that
    # sends nothing at all gets a status, once.
    no_ready = {
        "key": '.status.conditions.[] | select( .type == "Ready" ) | .status',
        "operator": "DoesNotExist",
    }
    status = """\
        {{ $now := Now }}
        conditions:
        - {type: Ready, status: "True", reason: KubeletReady, message: kubelet is posting ready status,
           lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
        {{ if not .status.allocatable }}
        allocatable: {cpu: "16", memory: 64Gi, pods: "250"}
        capacity: {cpu: "16", memory: 64Gi, pods: "250"}
        {{ end }}
        """
    return _stage("node-comes-up", "Node", [no_ready], status=status)


def _pod_gets_ready(after: float) -> dict[str, Any]:
    pending = {"key": ".status.phase", "operator": "In", "values": ["Pending"]}
    status = """\
        {{ $now := Now }}
        phase: Running
        startTime: {{ $now | Quote }}
        conditions:
        {{ range $type := list "PodReadyToStartContainers" "Initialized" "ContainersReady" "Ready" }}
        - {type: {{ $type }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
        {{ end }}
        {{ range .spec.readinessGates }}
        - {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
        {{ end }}
        - {type: PodScheduled, status: "True", lastTransitionTime: {{ $now | Quote }}}
        containerStatuses:
        {{ range .spec.containers }}
        - {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, started: true,
           restartCount: 0, state: {running: {startedAt: {{ $now | Quote }}}}}
        {{ end }}
        """
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    return _stage(
        "pod-gets-ready", "Pod", [alive, pending], status=status, after=after, annotation=READY_AFTER
    )


def _job_pod_completes() -> dict[str, Any]:
    matches: list[dict[str, Any]] = [
        {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
        {"key": ".status.phase", "operator": "In", "values": ["Running"]},
        {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]},
    ]
    status = """\
        {{ $now := Now }}
        phase: Succeeded
        containerStatuses:
        {{ range .spec.containers }}
        - {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: false, started: false,
           restartCount: 0, state: {terminated: {exitCode: 0, reason: Completed,
           startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}}
        {{ end }}
        """
    # A minute by default: long enough for a test to find it running.
    return _stage("job-pod-completes", "Pod", matches, status=status, after=60, annotation=DONE_AFTER)


def _pod_is_deleted(after: float) -> dict[str, Any]:
    # What has a grace of 0 the API server deletes at once. kwok may see it going all the same, and deletes by
    # the name: a moment later that may be another pod. Any other grace is a second at least, so that the
    # default stays within it.
    matches: list[dict[str, Any]] = [
        {"key": ".metadata.deletionGracePeriodSeconds > 0", "operator": "In", "values": ["true"]},
        {"key": f'.metadata.labels["{STUCK_TERMINATING}"]', "operator": "NotIn", "values": ["true"]},
    ]
    return _stage("pod-is-deleted", "Pod", matches, after=after, annotation=DELETED_AFTER)


def _stage(
    name: str,
    kind: str,
    matches: list[dict[str, Any]],
    *,
    status: str | None = None,
    after: float = 0,
    annotation: str | None = None,
) -> dict[str, Any]:
    delay: dict[str, Any] = {"durationMilliseconds": int(after * 1000)}
    if annotation is not None:
        delay["durationFrom"] = {"expressionFrom": f'.metadata.annotations["{annotation}"]'}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": matches},
            "delay": delay,
            "next": {"delete": True} if status is None else {"statusTemplate": status},
        },
    }
