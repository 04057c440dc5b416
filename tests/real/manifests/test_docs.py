"""The pages about installing say what is there: flags, folders, and the kustomization to copy."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import __version__
from tests.real.manifests.applying import DELETES, K8S

DOCS = K8S.parent / "docs"


@pytest.mark.parametrize("page", ["agent.md", "azure.md", "install.md", "replacing.md"])
def test_every_folder_that_a_page_names_is_there(page: str) -> None:
    named = set(re.findall(r"k8s/[a-z-]+[a-z]", (DOCS / page).read_text(encoding="utf-8")))

    assert named
    assert {name for name in named if not (K8S.parent / name / "kustomization.yaml").exists()} == set()


BLOCKS = re.findall(r"```yaml\n(.*?)```", (DOCS / "install.md").read_text(encoding="utf-8"), re.DOTALL)


def kustomized(folder: Path, *blocks: str) -> str:
    """What kustomize makes of these blocks in one kustomization."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("no kubectl on the path to build the manifests with")
    folder.mkdir(exist_ok=True)
    shutil.copytree(K8S, folder / "k8s")
    ours = folder / "ours"
    ours.mkdir()
    (ours / "kustomization.yaml").write_text("".join(blocks), encoding="utf-8")
    (ours / "maintenance.yaml").write_text("mode: Enforce\n", encoding="utf-8")
    done = subprocess.run(
        [program, "kustomize", str(ours)], capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.heavy
def test_the_kustomization_to_copy_does_what_it_says(tmp_path: Path) -> None:
    made = kustomized(tmp_path, BLOCKS[0])

    found = {each["kind"]: each for each in yaml.safe_load_all(made)}
    assert found["ConfigMap"]["data"] == {"maintenance.yaml": "mode: Enforce\n"}
    assert set(re.findall(r"image: (\S+)", made)) == {f"REGISTRY/node-maintenance-reconciler:{__version__}"}


@pytest.mark.heavy
def test_the_agent_alone_comes_from_the_readers_registry(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (DOCS / "agent.md").read_text(encoding="utf-8"), re.DOTALL)

    made = kustomized(tmp_path, blocks[0])

    assert set(re.findall(r"image: (\S+)", made)) == {f"REGISTRY/node-maintenance-reconciler:{__version__}"}


def test_no_page_applies_a_folder_whose_image_has_no_registry() -> None:
    for page in (*DOCS.glob("*.md"), K8S.parent / "README.md"):
        applied = re.findall(r"kubectl apply -k (?:\./)?k8s/([\w-]+)", page.read_text(encoding="utf-8"))
        assert {"agent", "cronjob", "deployment"}.isdisjoint(applied), page.name


@pytest.mark.heavy
def test_the_patches_for_another_prefix_change_it_everywhere(tmp_path: Path) -> None:
    made = kustomized(tmp_path, *BLOCKS[:2])

    policies = [
        each for each in yaml.safe_load_all(made) if each["kind"].startswith("ValidatingAdmissionPolicy")
    ]
    named = {
        each["metadata"]["name"]: str(each["spec"]).count("maintenance.example.com/")
        for each in policies
        if "variables" in each["spec"]
    }
    assert named == dict.fromkeys(
        (
            "node-maintenance-keys",
            "node-maintenance-people",
            "node-maintenance-reconciler",
            "node-maintenance-agent",
        ),
        1,
    )
    assert "node-maintenance.dev" not in str(policies)


@pytest.mark.heavy
def test_the_patch_for_another_port_adds_it_to_those_of_the_reconciler(tmp_path: Path) -> None:
    page = (DOCS / "notices.md").read_text(encoding="utf-8")
    (patch,) = re.findall(r"```yaml\n(patches:\n.*?)```", page, re.DOTALL)

    def egress(made: str) -> list[dict[str, Any]]:
        named = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(made)}
        found: list[dict[str, Any]] = named["NetworkPolicy", "reconciler-egress"]["spec"]["egress"]
        return found

    before = egress(kustomized(tmp_path / "before", BLOCKS[0]))
    after = egress(kustomized(tmp_path / "after", BLOCKS[0], patch))

    assert after[0].pop("ports") == [*before[0].pop("ports"), {"protocol": "TCP", "port": 587}]
    assert after == before


@pytest.mark.heavy
def test_the_patch_for_keys_of_triggers_replaces_each_list(tmp_path: Path) -> None:
    made = kustomized(tmp_path, BLOCKS[0], BLOCKS[2])

    (policy,) = (
        each
        for each in yaml.safe_load_all(made)
        if (each["kind"], each["metadata"]["name"])
        == ("ValidatingAdmissionPolicy", "node-maintenance-reconciler")
    )
    named = [(one["name"], one["expression"]) for one in policy["spec"]["variables"][:6]]
    assert named == [
        ("prefix", "'node-maintenance.dev/'"),
        ("triggerLabels", "['example.com/alter']"),
        ("triggerAnnotations", "[]"),
        ("triggerTaints", "[]"),
        ("triggerFinalizers", "[]"),
        ("drainsafe", policy["spec"]["variables"][5]["expression"]),
    ]


@pytest.mark.heavy
def test_the_line_for_what_is_off_leaves_out_its_roles_and_nothing_else(tmp_path: Path) -> None:
    def objects(made: str) -> set[tuple[str, str]]:
        return {(each["kind"], each["metadata"]["name"]) for each in yaml.safe_load_all(made)}

    before = objects(kustomized(tmp_path / "before", BLOCKS[0]))
    after = objects(kustomized(tmp_path / "after", BLOCKS[0], BLOCKS[3]))

    named = {"node-maintenance-history", "node-maintenance-pods"}
    assert before - after == {(kind, name) for kind in ("Role", "RoleBinding") for name in named}
    assert after < before
    assert DELETES in BLOCKS[3]
