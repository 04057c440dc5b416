"""An API server with one Node and no more, for answers that a real one can't be made to give."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.controlplane.processes import wait_for
from tests.support.fakes.loopback import Loopback

Object = dict[str, Any]

PREFIX = "node-maintenance.dev"
KEY = f"{PREFIX}/imds"
ACKNOWLEDGE = f"{PREFIX}/acknowledge"
NODE = "aks-np-12345678-vmss000001"
VM = "aks-np-12345678-vmss_1"
PROVIDER_ID = (
    "azure:///subscriptions/S/resourceGroups/mc_x/providers/Microsoft.Compute/"
    "virtualMachineScaleSets/aks-np-12345678-vmss/virtualMachines/1"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is none; status 0 hangs up without a word."""

    status: int
    message: str = "out of order"
    headers: dict[str, str] = field(default_factory=dict)
    after_doing_it: bool = False


class FakeNodeApi(Loopback):
    """Serves GET and merge PATCH of the Node. `requests` are the methods, `writes` the PATCHes done."""

    def __init__(self, *, spot: bool = False, provider_id: str = PROVIDER_ID) -> None:
        labels = {"kubernetes.azure.com/scalesetpriority": "spot"} if spot else {}
        self.node: Object = {
            "metadata": {"name": NODE, "uid": "uid-1", "labels": labels, "annotations": {"other": "kept"}},
            "spec": {"providerID": provider_id},
        }
        self.requests: list[str] = []
        self.writes: list[Object] = []
        self.tokens: list[str] = []
        self.user_agents: list[str] = []
        self._failures: dict[str, list[Failure]] = {"GET": [], "PATCH": []}
        super().__init__(self._handler())

    @property
    def published(self) -> str | None:
        value = self.node["metadata"]["annotations"].get(KEY)
        return None if value is None else str(value)

    def fail(self, method: str, failures: Iterable[Failure]) -> None:
        """Answer the next requests of this method so."""
        self._failures[method].extend(failures)

    def heal(self) -> None:
        """No more failures."""
        for failures in self._failures.values():
            failures.clear()

    def replace_node(self, uid: str) -> None:
        """Delete the Node and create another under its name, without our annotation."""
        annotations = {"other": "kept"}
        self.node = {
            **self.node,
            "metadata": {**self.node["metadata"], "uid": uid, "annotations": annotations},
        }

    def say(self, text: str | None) -> None:
        """From now on this is what the Node says about acknowledging."""
        others = {k: v for k, v in self.node["metadata"]["annotations"].items() if k != ACKNOWLEDGE}
        fresh = others if text is None else {**others, ACKNOWLEDGE: text}
        self.node["metadata"]["annotations"] = fresh

    def wait_for_events(self, *ids: str, seconds: float = 20) -> None:
        """Return once exactly these are published."""
        wait_for(f"published events {ids}", lambda: self.published_ids() == list(ids), seconds=seconds)

    def published_ids(self) -> list[str] | None:
        """The ids of the published events, None without an annotation."""
        text = self.published
        return None if text is None else [event["EventId"] for event in json.loads(text)["events"]]

    def _apply(self, patch: Object) -> Failure | None:
        metadata = self.node["metadata"]
        if patch["metadata"].get("uid", metadata["uid"]) != metadata["uid"]:
            return Failure(409, "Precondition failed: UID in precondition")
        self.writes.append(patch)
        metadata["annotations"] = {**metadata["annotations"], **patch["metadata"]["annotations"]}
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._serve("GET", None)

            def do_PATCH(self) -> None:
                assert self.headers["Content-Type"] == "application/merge-patch+json"
                self._serve("PATCH", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _serve(self, method: str, patch: Object | None) -> None:
                fake.requests.append(method)
                fake.tokens.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
                fake.user_agents.append(self.headers.get("User-Agent", ""))
                failure = fake._failures[method].pop(0) if fake._failures[method] else None
                if self.path != f"/api/v1/nodes/{NODE}":
                    failure = Failure(404, f'nodes "{self.path}" not found')
                if patch is not None and (failure is None or failure.after_doing_it):
                    failure = fake._apply(patch) or failure
                if failure is not None and failure.status == 0:
                    self.close_connection = True
                    return
                status = {} if failure is None else {"kind": "Status", "message": failure.message}
                body = json.dumps(status or fake.node).encode()
                self.send_response(200 if failure is None else failure.status)
                for name, value in ({} if failure is None else failure.headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
