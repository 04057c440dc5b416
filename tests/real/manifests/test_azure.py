"""What docs/azure.md has its reader apply: the kustomization to copy, the settings, the roles."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.event import Kind
from reconciler.settings.load import parse_settings
from reconciler.sources.arm.source import SECTION as ARM
from tests.real.manifests.applying import K8S
from tests.real.manifests.schemas import keeps_its_schema

PAGE = (K8S.parent / "docs" / "azure.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
USE = "azure.workload.identity/use"


def built(folder: Path, kustomization: str) -> list[dict[str, Any]]:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("no kubectl on the path to build the manifests with")
    shutil.copytree(K8S, folder / "k8s")
    ours = folder / "ours"
    ours.mkdir()
    (ours / "kustomization.yaml").write_text(kustomization, encoding="utf-8")
    (ours / "maintenance.yaml").write_text(BLOCKS[1], encoding="utf-8")
    done = subprocess.run(
        [program, "kustomize", str(ours)], capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["cronjob", "deployment"])
def test_only_the_reconciler_gets_an_identity(tmp_path: Path, way: str) -> None:
    found = built(tmp_path, BLOCKS[0].replace("../k8s/deployment\n", f"../k8s/{way}\n"))

    labelled = set()
    for each in found:
        keeps_its_schema(each)
        spec = each.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template is not None and template["metadata"]["labels"].get(USE) == "true":
            labelled.add((each["kind"], each["metadata"]["name"]))
    (account,) = [
        each
        for each in found
        if each["metadata"].get("annotations", {}).get("azure.workload.identity/client-id")
    ]

    assert labelled == {("CronJob" if way == "cronjob" else "Deployment", "reconciler")}
    assert (account["kind"], account["metadata"]["name"]) == ("ServiceAccount", "reconciler")
    subject = f"system:serviceaccount:{account['metadata']['namespace']}:{account['metadata']['name']}"
    assert f"--subject {subject}\n" in PAGE


def test_the_settings_of_the_page_are_good() -> None:
    first, second, third, automatic = (parse_settings(block, "maintenance.yaml") for block in BLOCKS[1:])

    assert (ARM.of(first).enabled, ARM.of(first).self_service) == (True, False)
    assert ARM.of(second).self_service
    assert third.policies({}).of_kind(Kind.REBOOT).says("acknowledge")
    assert not automatic.keys.state_label


def test_the_roles_of_the_page_are_json_and_name_no_right_to_write_but_one() -> None:
    roles = [json.loads(text) for text in re.findall(r"<<JSON\n(.*?)\nJSON", PAGE, re.DOTALL)]
    actions = [action for role in roles for action in role["Actions"]]

    assert len(roles) == 3
    assert {
        action.rpartition("/")[0].rpartition("/")[2] + "/" + action.rpartition("/")[2]
        for action in actions
        if not action.endswith("/read")
    } == {"performMaintenance/action"}
    for role in roles:
        assert f'--role "{role["Name"]}"' in PAGE
