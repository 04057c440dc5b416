"""Law 22: after `release --all` no object has a key that we wrote, and what is left is named."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jobs.cli import main
from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.keys import NODE_KEYS, OwnKeys, Writer, keys_of
from reconciler.model.node import PREFERENCE
from reconciler.model.record import Claim, ClaimKind, Cordon, Record, to_annotation
from reconciler.model.writes import NodeWrite
from reconciler.passes.release import left_on, release
from reconciler.run import PARTS
from tests.laws.histories import History, Step, people_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.builders import IMDS, NOW, PREFIX
from tests.support.of_features import annotations_of_signs
from tests.support.patches import answer_patch
from tests.support.searching import examples
from tests.support.stub import Answer, Asked, Stub, json_answer, status
from tests.support.worlds import maintenances

KEYS = keys_of(PREFIX)
ON_PODS = {"drain", "wait_completed", "restart"}
OTHER = "maintenance.example.com"
SIGNS = annotations_of_signs()
EVERYTHING = (Writer.PASS, Writer.COMMAND, Writer.AGENT)
WRITTEN = {key for key, one in KEYS.on_nodes.items() if one.writer is not Writer.HAND}
A_HOLD = hold_text(PersonHold(Word("alice@laptop", NOW)))
OURS = to_annotation(Record("u").cordoned(Cordon.OURS, Claim(ClaimKind.PERSON, "alice@laptop"), NOW))


def test_the_list_has_each_key_that_is_spelled() -> None:
    spelled = {
        name
        for name, value in vars(OwnKeys).items()
        if isinstance(value, cached_property) and isinstance(getattr(OwnKeys(), name), str)
    }
    assert {one.attribute for one in NODE_KEYS} == spelled - ON_PODS


@dataclass
class Cluster:
    """One node, and whether the DaemonSet of the agent is there."""

    kubeconfig: Path
    node: dict[str, Any] = field(default_factory=dict)
    agent: bool = False
    holds: str = ""

    def release(self, *arguments: str) -> tuple[int, str]:
        """Run the command; its exit code, and what it prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(["release", *arguments, "--kubeconfig", str(self.kubeconfig)])
        return code, printed.getvalue()

    @property
    def keys(self) -> set[str]:
        """Every key of a label, an annotation or a taint."""
        meta, spec = self.node["metadata"], self.node["spec"]
        return {*meta["labels"], *meta["annotations"], *(one["key"] for one in spec.get("taints", ()))}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    def answer(asked: Asked) -> Answer:
        node = made.node
        if asked.path == "/api/v1/nodes":
            return json_answer({"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": [node]})
        if asked.path.endswith("/daemonsets/node-maintenance-agent") and made.agent:
            return json_answer({"metadata": {"name": "node-maintenance-agent"}, "status": {}})
        if asked.path.endswith("/configmaps/node-maintenance-ledger") and made.holds:
            return json_answer({"metadata": {"name": "ledger"}, "data": {"holds": made.holds}})
        if asked.path.endswith("/events"):
            return json_answer(json.loads(asked.body), 201)
        if asked.path != "/api/v1/nodes/n":
            return status(404, "NotFound", "nothing is here")
        return answer_patch(node, asked) if asked.method == "PATCH" else json_answer(node)

    stub = Stub(answer)
    made = Cluster(stub.write_kubeconfig(tmp_path_factory.mktemp("release") / "kubeconfig"))
    yield made
    stub.close()


def node_with(
    labels: dict[str, str], annotations: dict[str, str], taints: list[dict[str, str]]
) -> dict[str, Any]:
    meta = {"name": "n", "uid": "u", "resourceVersion": "1", "labels": labels, "annotations": annotations}
    return {"kind": "Node", "metadata": meta, "spec": {"unschedulable": True, "taints": taints}, "status": {}}


texts = st.sampled_from((A_HOLD, "true", "", "{", '{"by":"bob"}', "x" * 40))
any_key = st.sampled_from(
    (*sorted(KEYS.on_nodes), f"{PREFIX}/pre-drain.disk", f"{PREFIX}/of-a-newer-version")
)
taints = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from((KEYS.maintenance, "theirs")),
            "effect": st.sampled_from((PREFERENCE, "NoSchedule")),
        }
    ),
    unique_by=lambda one: (one["key"], one["effect"]),
)
signs_of_features = st.sampled_from(({}, *(dict.fromkeys(SIGNS, owner) for owner in (PREFIX, OTHER))))
records = st.sampled_from(({}, {KEYS.record: OURS}, {KEYS.record: "no record"}))
others = st.sampled_from(({}, {f"{OTHER}/hold": A_HOLD}, {f"{OTHER}/record": OURS}))


@given(
    labels=st.dictionaries(any_key, st.just("x")),
    annotations=st.dictionaries(any_key, texts),
    taints=taints,
    more=st.tuples(records, signs_of_features, others),
    agent=st.booleans(),
    reset=st.booleans(),
)
@example(labels={KEYS.ignore: "x"}, annotations={}, taints=[], more=({}, {}, {}), agent=False, reset=False)
@example(
    labels={KEYS.record_kept: "x"},
    annotations={},
    taints=[],
    more=({KEYS.record: OURS}, {}, {}),
    agent=False,
    reset=False,
)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
def test_no_key_that_we_wrote_stays_and_each_that_stays_is_named(
    cluster: Cluster,
    labels: dict[str, str],
    annotations: dict[str, str],
    taints: list[dict[str, str]],
    more: tuple[dict[str, str], dict[str, str], dict[str, str]],
    agent: bool,
    reset: bool,
) -> None:
    annotations.pop(KEYS.record, None)
    record, signs, foreign = more
    cluster.node = node_with(labels, {**annotations, **record, **signs, **foreign}, taints)
    cluster.agent = agent

    code, printed = cluster.release("--all", *(("--reset",) if reset else ()))

    left = {key for key in cluster.keys if KEYS.owns(key)}
    if code == 0:
        theirs = {one["key"] for one in cluster.node["spec"]["taints"] if one["effect"] != PREFERENCE}
        still_written = {IMDS} if agent else set()
        assert left & WRITTEN <= still_written | (theirs & {KEYS.maintenance})
        # To remove it would hide what the agent reports until it writes again.
        assert (IMDS in left) is (agent and IMDS in {*labels, *annotations})
        # A record under the name of another node says nothing of the cordon of this one.
        ours = record.get(KEYS.record) == OURS and KEYS.uid not in annotations
        assert cluster.node["spec"].get("unschedulable", False) is not ours
        assert SIGNS.isdisjoint(cluster.node["metadata"]["annotations"]) is (OTHER not in signs.values())
    else:
        assert record.get(KEYS.record) == "no record"
        assert not reset
    named = printed.split()
    assert {key for key in left if f"{key};" not in named} == set()
    assert (f"--prefix {OTHER} releases them" in printed) is bool(foreign)
    nothing = "no node has labels or annotations of the reconciler" in printed
    assert not (nothing and (left or foreign or "released" in printed))
    assert nothing or left or foreign or "released" in printed
    assert cluster.keys >= foreign.keys()


def test_a_release_of_one_node_keeps_what_people_have_said_and_names_it(cluster: Cluster) -> None:
    said = {KEYS.hold: A_HOLD, KEYS.request: "{}", KEYS.said_before: "[]", IMDS: "{}", KEYS.record: OURS}
    cluster.node = node_with({KEYS.ignore: "true", KEYS.state: "in-maintenance"}, said, [])

    code, printed = cluster.release("n")

    # The UID names the node of what people have said. The next pass keeps who has released it.
    left = {KEYS.hold, KEYS.request, IMDS, KEYS.ignore, KEYS.uid, KEYS.said_before}
    assert (code, cluster.keys) == (0, left)
    assert printed.splitlines()[1:] == [
        "n: released and uncordoned",
        f"left on 1 node (n): {KEYS.hold}; reconciler resume n removes it",
        f"left on 1 node (n): {KEYS.request}; reconciler request n --cancel removes it",
    ]


def test_a_dry_run_names_the_same_and_changes_nothing(cluster: Cluster) -> None:
    cluster.node = node_with({KEYS.ignore: "true"}, {KEYS.hold: A_HOLD, KEYS.request: "{}"}, [])
    before = json.dumps(cluster.node)

    code, printed = cluster.release("--all", "--dry-run")

    assert (code, json.dumps(cluster.node)) == (0, before)
    assert printed.splitlines()[1:] == [
        "n: would be released, without its hold, request; it would stay cordoned, not by us",
        f"left on 1 node (n): {KEYS.ignore}; written by hand; remove it with kubectl",
        "dry run: nothing was written",
    ]


def test_holds_of_all_nodes_that_a_new_installation_would_read_are_named(cluster: Cluster) -> None:
    cluster.node = node_with({}, {}, [])
    cluster.holds = '[{"by": "bob@desk", "scope": "all"}]'
    try:
        _, printed = cluster.release("--all")
    finally:
        cluster.holds = ""

    assert (
        "left in the namespace node-maintenance: ConfigMap node-maintenance-ledger; they go with" in printed
    )
    assert "all nodes are held by bob@desk; reconciler resume --all ends that" in printed


BOTH = "hints: {taint: true, label: true}\npublish: [drainsafe, node-conditions, nodemaintenances]"

writes = Hits()


@writes.at_least(60)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits), max_size=8))
def test_the_list_has_whatever_passes_write(steps: list[tuple[Step, timedelta]]) -> None:
    history = History(small_world(), builders.settings(BOTH))
    for step, time in steps:
        step(history)
        history.wait(time)
        history.look()
    known = {*KEYS.on_nodes, *SIGNS}
    for call in history.api.done:
        if isinstance(call.content, NodeWrite):
            writes.count()
            assert {*call.content.labels, *call.content.annotations} <= known

    for node in list(history.cluster.nodes.values()):
        signs = PARTS.removed(node, PREFIX)
        write = release(node, PREFIX, signs, reset=True, writers=EVERYTHING)
        if write is not None:
            history.api.patch_node(write)
        for sign in signs.writes:
            sign.send(history.world.outside.client)
    for objects in (feature.objects for feature in PARTS.features if feature.objects):
        for deletion in objects.deletions(history.world.outside.client, PREFIX):
            deletion.send(history.world.outside.client)
    assert maintenances(history.cluster) == {}
    for node in history.cluster.nodes.values():
        keys = {*node.labels, *node.annotations, *(one.key for one in node.taints)}
        assert [key for key in keys if KEYS.owns(key) or key in SIGNS] == []
        assert left_on(node, PREFIX, EVERYTHING) == ()


def test_the_name_of_the_node_stays_with_a_hold_and_goes_with_the_last_key() -> None:
    with_hold = builders.node(annotations={KEYS.uid: builders.node().uid, KEYS.hold: A_HOLD})
    alone = builders.node(annotations={KEYS.uid: builders.node().uid})

    assert release(with_hold, PREFIX, reset=False) is None
    write = release(alone, PREFIX, reset=False)
    assert write is not None
    assert write.annotations == {KEYS.uid: None}
