"""Who may write what on Nodes: kubelets nothing of ours, and our own account nothing of others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from reconciler.model.node import LIFECYCLE
from tests.real.manifests.applying import applied
from tests.support.controlplane.api import Api, ApiError, Object
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.workloads import pod

POOL = Pool("np")
OWN, OTHER, NEW, FOURTH = (POOL.node_name(instance) for instance in (1, 2, 3, 4))
PREFIX = "node-maintenance.dev"
KEYS = "node-maintenance-keys"
PEOPLE = "node-maintenance-people"
OURS = "node-maintenance-reconciler"
WIDE = {"apiGroups": ["*"], "resources": ["nodes", "nodes/status", "nodes/proxy"], "verbs": ["*"]}
SYSTEM = "node-maintenance"


@pytest.fixture(scope="module")
def guarded(controlplane: ControlPlane) -> Iterator[ControlPlane]:
    """The policies in force; RBAC of ours is wider than shipped, so that only the policy can refuse."""
    controlplane.start_apiserver()
    controlplane.clean()
    with applied(controlplane, "base"):
        controlplane.api.patch("clusterroles", OURS, {"rules": [WIDE]})
        make_nodes(controlplane.api)
        accounts = (
            (kubelet(controlplane), KEYS),
            (reconciler(controlplane), OURS),
            (person(controlplane), PEOPLE),
        )
        for api, name in accounts:
            with api:
                in_force(api, name)
        yield controlplane
    controlplane.clean()


@pytest.fixture(autouse=True)
def fresh(guarded: ControlPlane) -> None:
    """The nodes as they were made."""
    for name in (OWN, OTHER, NEW, FOURTH):
        if guarded.api.find("nodes", name) is not None:
            guarded.api.patch("nodes", name, {"metadata": {"finalizers": None}})
            guarded.api.delete("nodes", name)
    make_nodes(guarded.api)


@pytest.fixture
def node(guarded: ControlPlane) -> Iterator[Api]:
    """The API server as the kubelet of OWN sees it."""
    with kubelet(guarded) as api:
        yield api


@pytest.fixture
def ours(guarded: ControlPlane) -> Iterator[Api]:
    """The API server as the reconciler's account sees it."""
    with reconciler(guarded) as api:
        yield api


def kubelet(cluster: ControlPlane, name: str = OWN) -> Api:
    user = f"system:node:{name}"
    return Api(cluster.kubeconfig, user_agent="tests-kubelet", impersonate=(user, "system:nodes"))


def reconciler(cluster: ControlPlane) -> Api:
    wait_for("the account", lambda: cluster.api.find("serviceaccounts", "reconciler", SYSTEM))
    return Api(cluster.kubeconfig_for("reconciler", SYSTEM), user_agent="tests-reconciler")


def person(cluster: ControlPlane, name: str = "alice@example.com") -> Api:
    return Api(cluster.kubeconfig, user_agent="tests-person", impersonate=(name, "system:masters"))


def make_nodes(api: Api) -> None:
    for instance in (1, 2):
        made = POOL.node(
            instance,
            labels={"kept": "yes", "mechanic.cordoned": "true", f"{PREFIX}/state": "maintenance-required"},
            annotations={"kept": "yes", f"{PREFIX}/request": "{}", f"{PREFIX}/record": "{}"},
        )
        made["metadata"]["finalizers"] = ["example.com/kept"]
        made["spec"]["taints"] = [{"key": "kept", "effect": "PreferNoSchedule"}]
        api.create("nodes", made)


def of_kubelet(instance: int, labels: dict[str, str]) -> Object:
    """A node as its kubelet registers it, with these labels of its pool."""
    made = POOL.node(instance, labels=labels)
    for key in ("kubernetes.io/role", "node-role.kubernetes.io/agent"):
        del made["metadata"]["labels"][key]  # NodeRestriction refuses these; a controller of AKS adds them
    return made


def in_force(api: Api, policy: str) -> None:
    """Return once the server enforces the policy, which it takes a moment to compile."""

    def refused() -> bool:
        # A value that neither identity may write: `another` is not ours, `state` is no kubelet's.
        key = "another" if policy == OURS else f"{PREFIX}/state"
        body: Object = {"metadata": {"labels": {key: "x"}}}
        if policy == PEOPLE:
            body = annotation("hold", '{"by": "x"}')
        headers = {"Content-Type": "application/merge-patch+json"}
        try:
            api.request("PATCH", f"api/v1/nodes/{OWN}", body, query={"dryRun": "All"}, headers=headers)
        except ApiError as error:
            return policy in str(error)
        return False

    wait_for(f"admission policy {policy}", refused)


def annotation(key: str, text: str | None = "x") -> Object:
    return {"metadata": {"annotations": {f"{PREFIX}/{key}": text}}}


def label(key: str, text: str | None = "x") -> Object:
    return {"metadata": {"labels": {f"{PREFIX}/{key}": text}}}


FORGED = [
    *(annotation(key) for key in ("request", "record", "acknowledge", "imds", "a-later-one")),
    annotation("request", None),
    annotation("record", None),
    *(label(key) for key in ("state", "ignore", "a-later-one")),
    label("state", None),
    {"metadata": {"annotations": None}},
    {"metadata": {"annotations": {"another": "x", f"{PREFIX}/request": "x"}}},
]


@pytest.mark.parametrize("subresource", [None, "status"])
@pytest.mark.parametrize("kind", ["merge", "strategic"])
@pytest.mark.parametrize("body", FORGED, ids=repr)
def test_a_kubelet_may_not_write_our_keys_on_its_own_node(
    node: Api, body: Object, kind: str, subresource: str | None
) -> None:
    with pytest.raises(ApiError) as error:
        node.patch("nodes", OWN, body, kind=kind, subresource=subresource)

    assert f"ValidatingAdmissionPolicy '{KEYS}'" in str(error.value)


WRITTEN_BY_US = [label("state"), label("maintenance-state"), label("deadline")]


@pytest.mark.parametrize(
    "body", [annotation("record"), annotation("maintenance-data"), *WRITTEN_BY_US], ids=repr
)
def test_a_kubelet_may_not_register_with_our_keys(guarded: ControlPlane, body: Object) -> None:
    made = of_kubelet(3, {})
    for part, values in body["metadata"].items():
        made["metadata"].setdefault(part, {}).update(values)
    with kubelet(guarded, NEW) as node:
        with pytest.raises(ApiError, match=KEYS):
            node.create("nodes", made)
        for part, values in body["metadata"].items():
            for key in values:
                del made["metadata"][part][key]
        node.create("nodes", made)


@pytest.mark.parametrize(
    ("key", "text"), [("ignore", "true"), ("maintenance-profile", "reboots--kernel"), ("another", "x")]
)
def test_a_kubelet_may_register_with_the_labels_of_its_pool(
    guarded: ControlPlane, key: str, text: str
) -> None:
    with kubelet(guarded, FOURTH) as node:
        node.create("nodes", of_kubelet(4, {f"{PREFIX}/{key}": text}))
        with pytest.raises(ApiError, match=KEYS):
            node.patch("nodes", FOURTH, label(key, None))

    assert guarded.api.get("nodes", FOURTH)["metadata"]["labels"][f"{PREFIX}/{key}"] == text


THEIRS = "cloud.sap"


def test_a_node_may_register_with_a_profile_of_maintenance_controller(guarded: ControlPlane) -> None:
    place = f"apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{KEYS}"
    forged: Object = {"metadata": {"labels": {f"{THEIRS}/maintenance-state": "operational"}}}
    headers = {"Content-Type": "application/merge-patch+json"}
    before = guarded.api.request("GET", place)["spec"]["variables"]
    # As docs/install.md patches the prefix.
    assert before[0]["name"] == "prefix"
    after = [{**before[0], "expression": f"'{THEIRS}/'"}, *before[1:]]
    guarded.api.request("PATCH", place, {"spec": {"variables": after}}, headers=headers)
    try:
        with kubelet(guarded) as own:
            wait_for("the other prefix", lambda: not permitted(own, forged, OWN))
        with kubelet(guarded, FOURTH) as node:
            with pytest.raises(ApiError, match=KEYS):
                node.create("nodes", of_kubelet(4, {f"{THEIRS}/maintenance-state": "operational"}))
            node.create("nodes", of_kubelet(4, {f"{THEIRS}/maintenance-profile": "flatcar"}))
    finally:
        guarded.api.request("PATCH", place, {"spec": {"variables": before}}, headers=headers)
        with kubelet(guarded) as own:
            wait_for("the prefix as it was", lambda: permitted(own, forged, OWN))


def test_a_kubelet_may_do_what_kubelets_do(node: Api) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    node.patch("nodes", OWN, {"status": {"conditions": [ready]}}, kind="strategic", subresource="status")
    node.patch("nodes", OWN, {"metadata": {"annotations": {"volumes.kubernetes.io/x": "y"}}})
    node.patch("nodes", OWN, {"metadata": {"labels": {"kept": None, "another": "x"}}})

    found = node.get("nodes", OWN)["metadata"]
    assert found["labels"][f"{PREFIX}/state"] == "maintenance-required"
    assert found["annotations"][f"{PREFIX}/request"] == "{}"


def test_a_kubelet_may_not_touch_another_node_at_all(node: Api) -> None:
    for body in (annotation("request"), {"metadata": {"annotations": {"another": "x"}}}):
        with pytest.raises(ApiError) as error:
            node.patch("nodes", OTHER, body)
        assert error.value.status == 403


@pytest.fixture
def own_pod(guarded: ControlPlane) -> Iterator[str]:
    """A pod on the kubelet's own node."""
    guarded.api.create("pods", pod("web", node_name=OWN, annotations={f"{PREFIX}/drain": "skip"}))
    yield "web"
    guarded.api.delete("pods", "web", grace=0)


@pytest.mark.parametrize("text", ["wait-completed", None])
def test_a_kubelet_may_not_write_our_keys_on_its_pods(node: Api, own_pod: str, text: str | None) -> None:
    for key in ("drain", "restart"):
        if text is None and key == "restart":
            continue  # there is none to remove
        with pytest.raises(ApiError, match=KEYS):
            node.patch("pods", own_pod, annotation(key, text), subresource="status")


def test_a_kubelet_may_report_the_status_of_its_pods(node: Api, own_pod: str) -> None:
    status: Object = {"conditions": [{"type": "Ready", "status": "True"}]}
    node.patch("pods", own_pod, {"status": status}, kind="strategic", subresource="status")
    node.patch("pods", own_pod, {"metadata": {"annotations": {"another": "x"}}}, subresource="status")


def test_a_kubelet_cannot_hide_our_key_among_many(node: Api) -> None:
    many = {f"x{number}": "" for number in range(20_000)}
    with pytest.raises(ApiError) as error:
        node.patch("nodes", OWN, {"metadata": {"annotations": {**many, f"{PREFIX}/request": "x"}}})

    assert KEYS in str(error.value)


def test_other_users_may_write_our_keys(guarded: ControlPlane) -> None:
    guarded.api.patch("nodes", OWN, annotation("request", '{"kind": "Reboot"}'))

    assert guarded.api.get("nodes", OWN)["metadata"]["annotations"][f"{PREFIX}/request"]


DRAINSAFE = {f"drainsafe.azure.com/maintenance{what}": "x" for what in ("owner", "state", "type")}
KEPT = {"key": "kept", "effect": "PreferNoSchedule"}
HINT = {"key": f"{PREFIX}/maintenance", "effect": "PreferNoSchedule"}
WRITTEN = {
    "cordon": {"spec": {"unschedulable": True}},
    "uncordon": {"spec": {"unschedulable": None}},
    "our taint": {"spec": {"taints": [KEPT, HINT]}},
    "our label": label("state", "in-maintenance"),
    "our label removed": label("state", None),
    "our annotation": annotation("record"),
    "our annotation removed": annotation("record", None),
    "mechanic's label removed": {"metadata": {"labels": {"mechanic.cordoned": None}}},
    "drainsafe": {"metadata": {"annotations": DRAINSAFE}},
    "all in one": {
        "metadata": {
            "labels": {f"{PREFIX}/state": "in-maintenance", "mechanic.cordoned": None},
            "annotations": {f"{PREFIX}/record": "x", **DRAINSAFE},
        },
        "spec": {"unschedulable": True},
    },
}


@pytest.mark.parametrize("what", WRITTEN)
def test_the_reconciler_may_write_what_it_writes(ours: Api, what: str) -> None:
    ours.patch("nodes", OWN, WRITTEN[what])


def test_the_reconciler_may_remove_its_taint(guarded: ControlPlane, ours: Api) -> None:
    guarded.api.patch("nodes", OWN, {"spec": {"taints": [KEPT, HINT]}})
    ours.patch("nodes", OWN, {"spec": {"taints": [KEPT]}})

    assert ours.get("nodes", OWN)["spec"]["taints"] == [KEPT]


def condition(kind: str, status: str = "True") -> Object:
    return {"type": kind, "status": status, "reason": "NodeMaintenance", "message": ""}


def test_the_reconciler_may_write_the_lifecycle_conditions_and_remove_them(ours: Api) -> None:
    put: Object = {"status": {"conditions": [condition(kind) for kind in LIFECYCLE]}}
    gone: Object = {"status": {"conditions": [{"type": kind, "$patch": "delete"} for kind in LIFECYCLE]}}
    for body in (put, gone):
        ours.patch("nodes", OWN, body, kind="strategic", subresource="status")

    found = ours.get("nodes", OWN)["status"]["conditions"]
    assert {one["type"] for one in found}.isdisjoint(LIFECYCLE)


OWNER = {"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}
REFUSED = {
    "a taint": {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}},
    "no taint": {"spec": {"taints": None}},
    "our taint in place of another": {"spec": {"taints": [HINT]}},
    "our taint with another effect": {"spec": {"taints": [KEPT, {**HINT, "effect": "NoSchedule"}]}},
    "another's taint changed": {"spec": {"taints": [{**KEPT, "effect": "NoSchedule"}]}},
    "another cordon and a taint": {"spec": {"unschedulable": True, "taints": []}},
    "podCIDR": {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}},
    "a label": {"metadata": {"labels": {"another": "x"}}},
    "another's label removed": {"metadata": {"labels": {"kept": None}}},
    "another's label changed": {"metadata": {"labels": {"kept": "no"}}},
    "a role": {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}},
    "mechanic's label": {"metadata": {"labels": {"mechanic.cordoned": "false"}}},
    "a prefix like ours": {"metadata": {"labels": {f"{PREFIX}.example.com/state": "x"}}},
    "an annotation": {"metadata": {"annotations": {"another": "x"}}},
    "an annotation beside ours": {"metadata": {"annotations": {"another": "x", f"{PREFIX}/record": "x"}}},
    "another's annotation removed": {"metadata": {"annotations": {"kept": None}}},
    "all annotations removed": {"metadata": {"annotations": None}},
    "drainsafe's other keys": {"metadata": {"annotations": {"drainsafe.azure.com/another": "x"}}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/x"]}},
    "no finalizer": {"metadata": {"finalizers": None}},
    "an owner": {"metadata": {"ownerReferences": [OWNER]}},
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_reconciler_may_write_nothing_else(ours: Api, what: str) -> None:
    with pytest.raises(ApiError) as error:
        ours.patch("nodes", OWN, REFUSED[what])

    assert error.value.status in (403, 422)
    assert f"ValidatingAdmissionPolicy '{OURS}'" in str(error.value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"conditions": [condition("Ready", "False")]}, id="Ready"),
        pytest.param({"conditions": [{"type": "Ready", "$patch": "delete"}]}, id="no Ready"),
        pytest.param({"conditions": [condition("Another")]}, id="another condition"),
        pytest.param({"capacity": {"cpu": "99"}}, id="capacity"),
        pytest.param({"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}, id="an address"),
        pytest.param({"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}, id="the kubelet's port"),
        pytest.param({"phase": "Terminated"}, id="phase"),
    ],
)
def test_the_reconciler_may_write_nothing_else_of_the_status(ours: Api, body: Object) -> None:
    with pytest.raises(ApiError) as error:
        ours.patch("nodes", OWN, {"status": body}, kind="strategic", subresource="status")

    assert f"ValidatingAdmissionPolicy '{OURS}'" in str(error.value)


def test_nor_others_labels_by_way_of_the_status(ours: Api) -> None:
    with pytest.raises(ApiError, match=OURS):
        ours.patch("nodes", OWN, {"metadata": {"labels": {"another": "x"}}}, subresource="status")


def test_the_reconciler_may_neither_create_nor_delete_nodes_nor_reach_the_kubelet(ours: Api) -> None:
    for method, path, body in (
        ("POST", "api/v1/nodes", POOL.node(3)),
        ("DELETE", f"api/v1/nodes/{OWN}", None),
        ("DELETE", "api/v1/nodes", None),
        ("GET", f"api/v1/nodes/{OWN}/proxy/pods", None),
    ):
        with pytest.raises(ApiError) as error:
            ours.request(method, path, body)
        assert f"ValidatingAdmissionPolicy '{OURS}'" in str(error.value), (method, path)


TRIGGERED: list[Object] = [
    {"metadata": {"labels": {"example.com/alter": "yes"}}},
    {"metadata": {"labels": {"kept": None}}},
    {"metadata": {"annotations": {"example.com/alter": "yes"}}},
    {"metadata": {"annotations": {"kept": None}}},
    {"metadata": {"finalizers": ["example.com/kept", "example.com/alter"]}},
    {
        "spec": {
            "taints": [
                {"key": "kept", "effect": "PreferNoSchedule"},
                {"key": "alter", "effect": "NoSchedule"},
            ]
        }
    },
    {"spec": {"taints": []}},
]
STRANGE: list[Object] = [
    {"metadata": {"labels": {"example.com/another": "yes"}}},
    {"metadata": {"labels": {"mechanic.cordoned": "no"}}},
    {"metadata": {"annotations": {"example.com/another": "yes"}}},
    {"metadata": {"finalizers": ["example.com/another", "example.com/kept"]}},
    {"metadata": {"finalizers": None}},
    {"spec": {"taints": [{"key": "another", "effect": "NoSchedule"}]}},
]


def test_the_policy_names_what_triggers_of_workflows_may_change(guarded: ControlPlane, ours: Api) -> None:
    place = f"apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{OURS}"
    headers = {"Content-Type": "application/merge-patch+json"}
    before = guarded.api.request("GET", place)["spec"]["variables"]
    named = {
        "triggerLabels": "['example.com/alter', 'kept']",
        "triggerAnnotations": "['example.com/alter', 'kept']",
        "triggerTaints": "['alter', 'kept']",
        "triggerFinalizers": "['example.com/alter']",
    }
    after = [{**one, "expression": named.get(one["name"], one["expression"])} for one in before]
    guarded.api.request("PATCH", place, {"spec": {"variables": after}}, headers=headers)
    try:
        for body in TRIGGERED:
            wait_for(f"permission for {body}", partial(permitted, ours, body))
        assert [body for body in STRANGE if permitted(ours, body)] == []
    finally:
        guarded.api.request("PATCH", place, {"spec": {"variables": before}}, headers=headers)
        wait_for("the policy as it was", lambda: not permitted(ours, TRIGGERED[0]))


def permitted(api: Api, body: Object, node: str = OTHER) -> bool:
    """Whether a write of the node would be permitted; nothing is written."""
    headers = {"Content-Type": "application/merge-patch+json"}
    try:
        api.request("PATCH", f"api/v1/nodes/{node}", body, query={"dryRun": "All"}, headers=headers)
    except ApiError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("alice@example.com", '{"by": "alice@example.com", "reason": "x, \\"by\\": me"}'),
        ("alice@example.com", '{"by":"alice@example.com"}'),
        ("alice@example.com", '{"by": "ann@laptop (unverified)"}'),
        ("alice@example.com", '{"reason": "by"}'),
        ("alice@example.com", "by bob"),
        ('al"i\\ce', '{"by": "al\\"i\\\\ce"}'),
    ],
    ids=["own", "dense", "unverified", "nobody", "no JSON", "quoted"],
)
@pytest.mark.parametrize("key", ["hold", "hold-of-many", "defer", "approved", "start", "request"])
def test_a_person_may_give_an_instruction_in_the_own_name(
    guarded: ControlPlane, name: str, text: str, key: str
) -> None:
    with person(guarded, name) as api:
        api.patch("nodes", OWN, annotation(key, text))
        api.patch("nodes", OWN, annotation(key, None))


@pytest.mark.parametrize("subresource", [None, "status"])
@pytest.mark.parametrize(
    "text",
    [
        '{"by": "bob"}',
        '{"by" : "alice@example.com2"}',
        '{"by": "alice@example.com", "by": "bob"}',
        '{"by": "alice@example.com", "\\u0062y": "bob"}',
        '{"by": "alice@example.com", "b\\u0079" :"bob"}',
        '{"x\\"by": "alice@example.com", "by": "bob"}',
        '{"by": "bob", "reason": "x (unverified)"}',
        '{"by": "bob\\" (unverified)"}',
    ],
)
def test_nobody_may_give_an_instruction_in_the_name_of_another(
    guarded: ControlPlane, text: str, subresource: str | None
) -> None:
    with person(guarded) as api:
        for key in ("hold", "hold-of-many", "defer", "approved", "start", "request"):
            with pytest.raises(ApiError, match=r"has to be alice@example\.com; leave it out"):
                api.patch("nodes", OWN, annotation(key, text), subresource=subresource)


OTHERS_END = '{"done": "resumed", "word": {"who": "bob"}, "by": "bob"}'
"""What stands before the end that a person writes."""


@pytest.mark.parametrize("by", ["alice@example.com", "ann@laptop (unverified)"])
def test_a_person_may_say_to_have_ended_an_instruction(guarded: ControlPlane, by: str) -> None:
    with person(guarded) as alice:
        for before in ("", f"{OTHERS_END}, "):
            text = f'[{before}{{"done": "resumed", "by": "{by}"}}]'
            alice.patch("nodes", OWN, annotation("said-before", text))
        alice.patch("nodes", OWN, annotation("said-before", None))


@pytest.mark.parametrize(
    "text",
    [
        f"[{OTHERS_END}]",
        f'[{{"by": "alice@example.com"}}, {OTHERS_END}]',
        '[{"by": "alice@example.com"}, "resumed by bob"]',
        '[{"by": "bob", "x": "\\"by\\": \\"alice@example.com\\"}]"}]',
        '[{"by": "bob", "x": " (unverified)"}]',
    ],
    ids=["other", "last", "text", "inside", "unverified"],
)
def test_nobody_may_say_that_another_has_ended_an_instruction(guarded: ControlPlane, text: str) -> None:
    with (
        person(guarded) as alice,
        pytest.raises(ApiError, match=r"has to be alice@example\.com; leave it out"),
    ):
        alice.patch("nodes", OWN, annotation("said-before", text))


def test_an_instruction_of_another_may_stay_and_be_ended(guarded: ControlPlane) -> None:
    with person(guarded, "bob") as bob, person(guarded) as alice:
        bob.patch("nodes", OWN, annotation("hold", '{"by": "bob"}'))
        alice.patch("nodes", OWN, {"metadata": {"labels": {"kept": "too"}}})
        alice.patch("nodes", OWN, annotation("hold", None))
