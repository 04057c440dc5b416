"""What `check-config --permissions` prints lets the reconciler do what the workflows of a file do."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
import yaml

from jobs.cli import main
from tests.real.manifests.applying import K8S, kubectl
from tests.real.manifests.test_node_policies import permitted
from tests.support.controlplane.api import Api, Object
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

FILE = """\
intervals: {requeue: 1m}
instances:
  check:
  - type: stagger
    name: turn
    config: {duration: 1h, leaseName: turns, leaseNamespace: default, parallel: 2}
  trigger:
  - {type: alterLabel, name: a, config: {key: example.com/alter, value: "yes"}}
  - {type: alterLabel, name: b, config: {key: cloud.sap/alter, value: "yes"}}
  - {type: alterAnnotation, name: c, config: {key: example.com/note, remove: true}}
  - {type: alterFinalizer, name: d, config: {key: example.com/keep}}
  - {type: taint, name: e, config: {key: out}}
profiles:
- {name: reboots, operational: {transitions: [{check: turn, trigger: a, next: maintenance-required}]}}
"""
WRITTEN: list[Object] = [
    {"metadata": {"labels": {"example.com/alter": "yes"}}},
    {"metadata": {"labels": {"cloud.sap/alter": "yes"}}},
    {"metadata": {"annotations": {"example.com/note": "x"}}},
    {"metadata": {"annotations": {"cloud.sap/record": "x"}}},
    {"metadata": {"finalizers": ["example.com/keep"]}},
    {"spec": {"taints": [{"key": "out", "effect": "NoSchedule"}]}},
]
OTHERS: list[Object] = [
    {"metadata": {"labels": {"example.com/note": "yes"}}},
    {"metadata": {"annotations": {"example.com/alter": "yes"}}},
    {"metadata": {"labels": {"node-maintenance.dev/state": "in-maintenance"}}},
]


def test_the_printed_patches_and_roles_are_what_the_workflows_need(
    controlplane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    controlplane.start_apiserver()
    controlplane.clean()
    controlplane.api.create("nodes", Pool("np").node(2))
    file, ours = tmp_path / "their.yaml", tmp_path / "ours"
    file.write_text(FILE, encoding="utf-8")
    ours.mkdir()
    assert main(["check-config", str(file), "--permissions"]) == 0
    patches, *roles = capsys.readouterr().out.split("---\n")
    base = yaml.safe_dump({"resources": [os.path.relpath(K8S / "base", ours), "roles.yaml"]})
    (ours / "roles.yaml").write_text("---\n".join(roles), encoding="utf-8")
    (ours / "kustomization.yaml").write_text(base + patches, encoding="utf-8")

    def missing() -> list[str]:
        """Return what the command misses in the cluster."""
        place = "configmap/default/their"
        assert main(["check-config", place, "--kubeconfig", str(controlplane.kubeconfig)]) == 0
        lines = capsys.readouterr().err.splitlines()
        return [line.removeprefix(f"warning: {place}: ").partition(";")[0] for line in lines]

    controlplane.api.create("configmaps", {"metadata": {"name": "their"}, "data": {"maintenance.yaml": FILE}})
    account = "the ServiceAccount of the reconciler may not"
    leases = [
        f"{account} create Leases in the namespace default",
        f"{account} patch the Lease turns-0 in the namespace default",
        f"{account} patch the Lease turns-1 in the namespace default",
    ]
    assert missing() == leases  # without the policy, no key is restricted
    try:
        kubectl(controlplane, "apply", "-k", str(K8S / "base"))
        policy = "the admission policy node-maintenance-reconciler in the cluster"
        assert missing() == [
            f"{policy} has another prefix than cloud.sap",
            f"{policy} lacks triggerLabels: example.com/alter",
            f"{policy} lacks triggerAnnotations: example.com/note",
            f"{policy} lacks triggerTaints: out",
            f"{policy} lacks triggerFinalizers: example.com/keep",
            *leases,
        ]
        kubectl(controlplane, "apply", "-k", str(ours))
        wait_for("the Roles", lambda: not missing())
        wait_for(
            "the account", lambda: controlplane.api.find("serviceaccounts", "reconciler", "node-maintenance")
        )
        with Api(controlplane.kubeconfig_for("reconciler", "node-maintenance"), user_agent="tests") as api:
            # Until the server has compiled the policy it permits everything.
            wait_for("the policy", lambda: not permitted(api, OTHERS[0]))
            for body in WRITTEN:
                wait_for(f"permission for {body}", partial(permitted, api, body))
            assert [body for body in OTHERS if permitted(api, body)] == []
    finally:
        kubectl(controlplane, "delete", "-k", str(ours), "--ignore-not-found", "--wait=false")
        controlplane.clean()
