"""What `reconciler drain` loads: a person waits for it, so it does without a pass and the settings."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import run

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from jobs.cli import main
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.stub import Answer, Stub

UNNEEDED = (
    "pydantic",
    "kubernetes",
    "opentelemetry",
    "prometheus_client",
    "reconciler.run",
    "reconciler.settings",
    "reconciler.passes.decide",
)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Stub]:
    """An API server with one empty node, which remembers its cordon; its watches stay silent."""
    with closing(StubCluster(tmp_path, node("n"))) as cluster:
        yield cluster.stub


@pytest.mark.heavy
def test_a_whole_drain_imports_neither_a_pass_nor_the_settings_nor_the_official_client(
    api: Stub, tmp_path: Path
) -> None:
    config = api.write_kubeconfig(tmp_path / "config")
    command = [sys.executable, "-X", "importtime", "-m", "jobs", "drain", "n", "--kubeconfig", str(config)]
    done = run(command, capture_output=True, text=True, timeout=60, check=False)
    loaded = set(re.findall(r"^import time:.*\|\s+([\w.]+)$", done.stderr, re.MULTILINE))

    assert (done.returncode, done.stdout) == (0, "n: cordoned\nn: drained, 0 pods gone\n")
    assert {"reconciler.drain.drainer", "reconciler.kubernetes.eviction"} <= loaded
    assert [name for name in loaded for part in UNNEEDED if f"{name}.".startswith(f"{part}.")] == []
    patched = [json.loads(asked.body) for asked in api.asked if asked.method == "PATCH"]
    assert [patch["spec"] for patch in patched] == [{"unschedulable": True}]


def test_a_drain_is_traced_where_the_environment_has_a_receiver(
    api: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Stub(lambda _: Answer(b"", content_type="application/x-protobuf"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    try:
        assert main(["drain", "n", "--kubeconfig", str(api.write_kubeconfig(tmp_path / "config"))]) == 0
    finally:
        receiver.close()

    sent = [ExportTraceServiceRequest.FromString(one.body) for one in receiver.asked]
    resources = [each for one in sent for each in one.resource_spans]
    spans = [span for each in resources for scope in each.scope_spans for span in scope.spans]
    (drain,) = [span for span in spans if span.name == "drain"]
    values = {one.key: one.value.string_value for one in drain.attributes}
    assert (values["k8s.node.name"], values["node_maintenance.phase"]) == ("n", "drained")
    assert "GET nodes" in {span.name for span in spans}
    assert {span.parent_span_id for span in spans if span is not drain} == {drain.span_id}
