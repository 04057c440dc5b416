"""Rules of the manifests and the image, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_NODES = "k8s/base/admission-nodes.yaml"
_OURS = "k8s/base/admission-reconciler.yaml"
_POLICIES = "tests/real/manifests/test_node_policies.py"
_IMAGE = "tests/real/tools/test_image.py"

RIGHTS_RULES = (
    Mutant(
        0,
        "a kubelet changes no label of ours",
        _NODES,
        "variables.labels.all(key, !key.startsWith(variables.prefix) ||",
        "variables.labels.all(key, true ||",
        _POLICIES,
    ),
    Mutant(
        0,
        "a kubelet removes no annotation of ours",
        _NODES,
        "!key.startsWith(variables.prefix) || key in variables.annotations)",
        "true)",
        _POLICIES,
    ),
    Mutant(
        0,
        "a kubelet's status writes are judged, too",
        _NODES,
        "resources: [nodes, nodes/*]",
        "resources: [nodes]",
        _POLICIES,
    ),
    Mutant(
        0,
        "a kubelet's writes of pods are judged, too",
        _NODES,
        "resources: [pods, pods/*]",
        "resources: [pods]",
        _POLICIES,
    ),
    Mutant(
        0,
        "the reconciler changes no taint",
        _OURS,
        "variables.taints.all(one, one in variables.taintsBefore ||",
        "variables.taints.all(one, true ||",
        _POLICIES,
    ),
    Mutant(
        0,
        "the reconciler removes no taint",
        _OURS,
        "variables.taintsBefore.all(one, one in variables.taints ||",
        "variables.taintsBefore.all(one, true ||",
        _POLICIES,
    ),
    Mutant(
        0,
        "the reconciler changes no condition of the kubelet",
        _OURS,
        "variables.ofStatus.all(one, one.type in variables.conditions ||",
        "variables.ofStatus.all(one, true ||",
        _POLICIES,
    ),
    Mutant(
        0,
        "the image has no pip as a wheel",
        "image/root.py",
        '"ensurepip",',
        "",
        _IMAGE,
    ),
    Mutant(
        0,
        "the image has no programs of packages",
        "image/root.py",
        "if not _PROGRAMS.fullmatch(name)]",
        "if not name]",
        _IMAGE,
    ),
)
