"""Reads and annotates the one Node on which this process runs.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from reconciler import USER_AGENT
from reconciler.model.errors import ClusterError, Unauthorized, Unreachable, error_for
from reconciler.model.keys import keys_of
from reconciler.model.limits import is_object_name
from reconciler.sources.imds.agent.plain_http import HttpAnswer, exchange
from reconciler.sources.imds.keys import ACKNOWLEDGED, PUBLISHED

TIMEOUT = 10.0
"""The timeout of a request to the API server, in seconds."""

_MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# Labels, annotations and UID are a fifth of an AKS Node; images and conditions are not sent.
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the API server. The files are read for each call, because both are rotated."""

    server: str
    token_file: Path
    ca_file: Path | None

    def __post_init__(self) -> None:
        """Raise ValueError if `server` is not the URL of a server."""
        url = urlsplit(self.server)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"not the URL of an API server: {self.server!r}")


def in_cluster(environment: Mapping[str, str]) -> Access:
    """Return the access that every Pod has; Unauthorized outside a Pod."""
    host = environment.get("KUBERNETES_SERVICE_HOST")
    if not host:
        raise Unauthorized("KUBERNETES_SERVICE_HOST is not set: not in a Pod, and no server was named")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    return Access(f"https://{host}:{port}", _MOUNTED / "token", _MOUNTED / "ca.crt")


@dataclass(frozen=True, slots=True)
class OwnNode:
    """The parts of its Node that the agent needs.

    `published` is the annotation that the agent writes, None if there is none. `acknowledge` is the one that
    names the events that may start.
    """

    uid: str
    provider_id: str
    spot: bool
    published: str | None
    acknowledge: str | None = None


@dataclass(frozen=True, slots=True)
class Annotations:
    """The Node's UID and the agent's two annotations, each None if there is none."""

    uid: str
    published: str | None
    acknowledge: str | None


class OwnNodeClient:
    """A client of the API server for one Node and two of its annotations."""

    def __init__(self, access: Access, node: str, prefix: str, *, user_agent: str = USER_AGENT) -> None:
        """Use this access for the Node with this name; `prefix` is the prefix of the annotations' keys.

        Raises ValueError if no Node can have the name: in a path it could lead to another object.
        """
        if not is_object_name(node):
            raise ValueError(f"not the name of a Node: {node[:100]!a}")
        self._access = access
        self._node = node
        self._annotation = PUBLISHED.below(prefix)
        self._acknowledge = ACKNOWLEDGED.below(prefix)
        self._uid = keys_of(prefix).uid
        self._user_agent = user_agent

    def read(self) -> OwnNode:
        """Return all that the agent needs of the Node."""
        node = self._ask("GET", {"Accept": "application/json"})
        metadata = _object(node.get("metadata"))
        labels = _object(metadata.get("labels"))
        return OwnNode(
            uid=str(metadata.get("uid", "")),
            provider_id=str(_object(node.get("spec")).get("providerID", "")),
            # AKS's own label, and the one of node auto-provisioning (Karpenter).
            spot=labels.get("kubernetes.azure.com/scalesetpriority") == "spot"
            or labels.get("karpenter.sh/capacity-type") == "spot",
            published=_annotation(metadata, self._annotation),
            acknowledge=self._acknowledged_in(metadata),
        )

    def read_annotations(self) -> Annotations:
        """Return the Node's UID and both annotations, at the lowest cost for the API server."""
        metadata = _object(self._ask("GET", {"Accept": _METADATA_ONLY}).get("metadata"))
        return Annotations(
            str(metadata.get("uid", "")),
            _annotation(metadata, self._annotation),
            self._acknowledged_in(metadata),
        )

    def _acknowledged_in(self, metadata: Mapping[str, object]) -> str | None:
        """Return the annotation that names the events that may start, None for a copy from another node."""
        uid = metadata.get("uid")
        return (
            None
            if _annotation(metadata, self._uid) not in (None, uid)
            else _annotation(metadata, self._acknowledge)
        )

    def publish(self, uid: str, text: str) -> None:
        """Write the annotation; Conflict or Rejected if the Node has been replaced by another one."""
        patch = {"metadata": {"uid": uid, "annotations": {self._annotation: text}}}
        headers = {"Accept": _METADATA_ONLY, "Content-Type": "application/merge-patch+json"}
        self._ask("PATCH", headers, json.dumps(patch).encode())

    def _ask(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> dict[str, object]:
        headers = {**headers, "User-Agent": self._user_agent, "Authorization": f"Bearer {self._token()}"}
        path = f"{urlsplit(self._access.server).path.rstrip('/')}/api/v1/nodes/{self._node}"
        try:
            answer = exchange(self._connection(), method, path, headers, body, timeout=TIMEOUT)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(f"no answer from the API server at {self._access.server}: {reason}") from error
        try:
            value = json.loads(answer.body)
        except (ValueError, RecursionError):
            value = None
        if answer.status != 200:
            raise _error(answer, value)
        if not isinstance(value, dict):
            raise Unreachable("the API server answered with something that is not a JSON object", status=200)
        return value

    def _token(self) -> str:
        try:
            return self._access.token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise Unauthorized(f"no token: {error}") from error

    def _connection(self) -> http.client.HTTPConnection:
        url = urlsplit(self._access.server)
        assert url.hostname is not None
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname, url.port)
        # Not create_default_context: from Python 3.13 on it is strict, and refuses the CA of AKS, which has
        # no key identifier. Nor the system's CAs: they take 8 MiB, and none of them is the cluster's.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            if self._access.ca_file is None:
                context.load_default_certs()
            else:
                context.load_verify_locations(self._access.ca_file)
        except OSError as error:
            raise Unauthorized(f"no usable CA in {self._access.ca_file}: {error}") from error
        return http.client.HTTPSConnection(url.hostname, url.port, context=context)


def _annotation(metadata: Mapping[str, object], key: str) -> str | None:
    value = _object(metadata.get("annotations")).get(key)
    return value if isinstance(value, str) else None


def _error(answer: HttpAnswer, value: object) -> ClusterError:
    status = _object(value)
    given = status.get("message")
    message = given if isinstance(given, str) and given else f"{answer.status} {answer.reason}"
    return error_for(answer.status)(
        message, status=answer.status, retry_after=answer.retry_after, reason=str(status.get("reason", ""))
    )


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
