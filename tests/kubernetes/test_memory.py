"""What tenants write into their objects costs no memory: objects of 250 KiB each, read in a process."""

import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from reconciler.kubernetes.connection import BUDGETS, CORE, LARGEST, PODS
from reconciler.kubernetes.objects import OnlyMetadata
from reconciler.kubernetes.scale.pages import list_streamed
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.formats import budget_format, json_format, pod_format
from reconciler.kubernetes.wire.lists import ListResult, list_all
from reconciler.kubernetes.wire.reducing import CLAIMS, LABELS, PREFERENCES
from reconciler.model.errors import TooLarge, Unreachable
from reconciler.model.limits import NAME
from reconciler.model.pod import Pod
from reconciler.model.selector import Requirement
from tests.support.shapes import encoded, field
from tests.support.stub import JSON, PROTOBUF, Answer, Asked, Stub, StubMaker, json_answer

pytestmark = pytest.mark.heavy

Listing = Callable[..., ListResult[Any]]

in_both_ways = pytest.mark.parametrize("listing", [list_all, list_streamed])


SIZE = 250 << 10
COUNT = 40
MOST_KIB = 6 << 10
# A page of JSON is held as a whole, and so is what is decoded of it; without its limit that is more than all.
COUNT_IN_JSON = 110
MOST_KIB_OF_JSON = 40 << 10


def entry(key: str, value: str) -> bytes:
    return field(1, key) + field(2, value)


MANY = {f"{number:x}.example/{'k' * 40}": "v" * 60 for number in range(SIZE // 120)}
WORDS = {f"p{number}.example/drain": "w" * 60 for number in range(SIZE // 80)}


def meta(annotations: dict[str, str], labels: dict[str, str], owner: str = "") -> bytes:
    found = field(1, "x") + field(3, "default") + field(5, "u")
    found += b"".join(field(12, entry(*pair)) for pair in annotations.items())
    found += b"".join(field(11, entry(*pair)) for pair in labels.items())
    if owner:
        found += field(
            13, field(1, owner) + field(3, owner) + field(4, owner) + field(5, owner) + b"\x30\x01"
        )
    return field(1, found)


def selector(labels: dict[str, str]) -> bytes:
    return field(2, field(2, b"".join(field(1, entry(*pair)) for pair in labels.items())))


def claims() -> bytes:
    return field(2, b"".join(field(1, field(2, field(10, field(1, "c" * 250)))) for _ in range(SIZE // 260)))


OBJECTS: dict[str, tuple[str, bytes]] = {
    "budgets, an annotation": ("PodDisruptionBudget", meta({"a": "x" * SIZE}, {}) + selector({"app": "x"})),
    "budgets, labels": ("PodDisruptionBudget", meta({}, MANY)),
    "budgets, a selector": ("PodDisruptionBudget", meta({}, {}) + selector(MANY)),
    "pods, an annotation": ("Pod", meta({"a": "x" * SIZE}, {})),
    "pods, many annotations": ("Pod", meta(MANY, {})),
    "pods, words of drains": ("Pod", meta(WORDS, {})),
    "pods, one long word": ("Pod", meta({"node-maintenance.dev/drain": "x" * SIZE}, {})),
    "pods, labels": ("Pod", meta({}, MANY)),
    "pods, an owner": ("Pod", meta({}, {}, "o" * (SIZE // 4))),
    "pods, claims": ("Pod", meta({}, {}) + claims()),
}
# It imports everything once, and reads each list in a fork. What is counted are the bytes that are held: the
# size of a process depends on the machine.
CHILD = """
    import json, os, sys, tracemalloc
    from reconciler.kubernetes.connection import Connection
    from reconciler.kubernetes.connection import BUDGETS, PODS
    from reconciler.kubernetes.objects import OnlyMetadata
    from reconciler.kubernetes.wire.formats import budget_format, json_format, pod_format
    from reconciler.kubernetes.scale.pages import list_streamed
    from reconciler.kubernetes.wire.lists import list_all

    def growth(config, kind, accept, count):
        connection = Connection(config)
        form, path = (pod_format(), PODS) if kind == "Pod" else (budget_format(), BUDGETS)
        listing = list_streamed
        if accept == "application/json":
            form, listing = json_format(OnlyMetadata, lambda one: one.metadata.name), list_all
        one = listing(connection, path, form, fields="one").items
        tracemalloc.start()
        found = listing(connection, path, form).items
        assert len(one) == 1 and len(found) == count
        return tracemalloc.get_traced_memory()[1] >> 10

    for line in sys.stdin:
        fork = os.fork()
        if not fork:
            print(growth(*json.loads(line)), flush=True)
            os._exit(0)
        if os.waitpid(fork, 0)[1]:
            sys.exit(1)
"""


@pytest.fixture(scope="module")
def reader() -> Iterator[Popen[str]]:
    """A process that reads lists, as CHILD says; what it prints beside them shows in the test's output."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        yield process
        process.kill()


def growth(
    reader: Popen[str], tmp_path: Path, kind: str, accept: str, page: Callable[[int, str], bytes]
) -> int:
    """Return how many KiB a process holds at most while it lists the objects, after it has read one."""
    most = COUNT if accept == PROTOBUF else COUNT_IN_JSON

    def answer(asked: Asked) -> Answer:
        if asked.query.get("fieldSelector") == "one":
            return Answer(page(1, ""), content_type=accept)
        done = int(asked.query.get("continue", "0"))
        count = min(int(asked.query["limit"]), most - done)
        return Answer(page(count, str(done + count) if done + count < most else ""), content_type=accept)

    stub = Stub(answer)
    config = str(stub.write_kubeconfig(tmp_path / "config"))
    assert reader.stdin is not None
    assert reader.stdout is not None
    print(json.dumps([config, kind, accept, most]), file=reader.stdin, flush=True)
    found = reader.stdout.readline()
    stub.close()
    assert found, "the process has ended"
    return int(found)


@pytest.mark.parametrize("case", OBJECTS)
def test_a_list_in_protobuf_keeps_only_what_is_read(reader: Popen[str], tmp_path: Path, case: str) -> None:
    kind, found = OBJECTS[case]

    def page(count: int, token: str) -> bytes:
        items = field(2, found) * count
        listed = field(1, field(2, "7") + field(3, token)) + items
        return b"k8s\x00" + field(1, field(1, "v1") + field(2, f"{kind}List")) + field(2, listed)

    assert growth(reader, tmp_path, kind, PROTOBUF, page) < MOST_KIB


def test_a_list_in_json_comes_in_pages_that_fit(reader: Popen[str], tmp_path: Path) -> None:
    one = json.dumps({"metadata": {"name": "x", "annotations": {"a": "x" * SIZE}}})

    def page(count: int, token: str) -> bytes:
        items = ",".join([one] * count)
        return f'{{"metadata": {{"continue": "{token}"}}, "items": [{items}]}}'.encode()

    assert growth(reader, tmp_path, "Pod", JSON, page) < MOST_KIB_OF_JSON


def pod(document: dict[str, Any]) -> Pod:
    return pod_format().read(encoded(protobuf.Pod(), document))


def test_what_is_read_of_a_pod_is_kept() -> None:
    annotations = {
        "node-maintenance.dev/drain": "skip",
        "node-maintenance.dev/wait-completed": "true",
        "karpenter.sh/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion",
        "kubernetes.io/config.mirror": "hash",
        "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
    }
    labels = {"app": "web", "node-maintenance.dev/restart": "true"}
    found = pod({"metadata": {"annotations": {**annotations, "a": "b"}, "labels": labels}})

    assert (found.annotations, found.labels) == (annotations, labels)


def test_of_very_many_labels_those_that_ask_something_are_kept() -> None:
    asked = {
        "cluster.x-k8s.io/drain": "skip",
        "node-maintenance.dev/restart": "true",
        "node-maintenance.dev/wait-completed": "true",
    }
    many = {f"a{number}": "x" for number in range(LABELS * 3)}
    found = pod({"metadata": {"labels": {**many, **asked}}})

    assert len(found.labels) == LABELS
    assert asked.items() <= found.labels.items()


def test_a_reference_that_is_too_long_stays_no_name() -> None:
    reference = {
        "kind": "ReplicaSet",
        "name": "a" * 1000,
        "uid": "u",
        "apiVersion": "apps/v1",
        "controller": True,
    }
    volumes = [{"persistentVolumeClaim": {"claimName": "c" * 1000}}] * (CLAIMS + 1)
    found = pod({"metadata": {"ownerReferences": [reference]}, "spec": {"volumes": volumes}})

    assert found.owner is not None
    assert (found.owner.named, len(found.owner.name)) == (False, NAME + 1)
    assert (len(found.spec.claims), len(found.spec.claims[0])) == (CLAIMS, NAME + 1)


def test_of_what_a_pod_prefers_only_states_of_maintenance_are_kept_up_to_a_limit() -> None:
    state = {
        "key": "cloud.sap/maintenance-state",
        "operator": "In",
        "values": ["operational", "b", "c" * 500],
    }
    other = {"key": "zone", "operator": "In", "values": ["1"]}
    terms = [{"preference": {"matchExpressions": [other, state]}}, {"weight": 1}] * 100
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    document = {"metadata": {"name": "p"}, "spec": {"affinity": affinity}}

    found = pod_format(placement=True).read(encoded(protobuf.Pod(), document))

    assert found.placement is not None
    kept = Requirement("cloud.sap/maintenance-state", "In", ("operational", "b"))
    assert found.placement.prefers == (kept,) * PREFERENCES


def test_a_selector_that_is_too_large_selects_its_whole_namespace() -> None:
    document = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": MANY}},
    }
    found = budget_format().read(encoded(protobuf.PodDisruptionBudget(), document))

    assert found.covers(Pod("default", "p", "u", "n"))
    assert not found.covers(Pod("other", "p", "u", "n"))


@pytest.mark.parametrize(
    ("size", "limits"),
    [
        # From the third page on, each is requested before the one before is decoded.
        pytest.param(100, [100, 400, 400, 1600, 1600, 5000], id="small objects come in many a page"),
        pytest.param(26 << 10, [100, 157, 157], id="nodes of AKS in 4 MB"),
        pytest.param(1 << 20, [100, 3, 3], id="large objects in the same bytes"),
    ],
)
def test_pages_are_chosen_by_the_bytes_of_what_was_listed(
    stub: StubMaker, size: int, limits: list[int]
) -> None:
    item = field(2, field(1, field(1, "x") + field(12, entry("a", "x" * size))))

    def answer(asked: Asked) -> Answer:
        token = "" if asked.number == len(limits) - 1 else str(asked.number + 1)
        listed = field(1, field(2, "7") + field(3, token)) + item * int(asked.query["limit"])
        return Answer(b"k8s\x00" + field(1, field(2, "PodList")) + field(2, listed), content_type=PROTOBUF)

    server, connection = stub(answer)

    assert len(list_streamed(connection, PODS, pod_format()).items) == sum(limits)
    assert [int(asked.query["limit"]) for asked in server.asked] == limits


@in_both_ways
def test_a_page_without_objects_changes_nothing(stub: StubMaker, listing: Listing) -> None:
    def answer(asked: Asked) -> Answer:
        token = "" if asked.number == 2 else str(asked.number + 1)
        listed = field(1, field(2, "7") + field(3, token))
        return Answer(b"k8s\x00" + field(1, field(2, "PodList")) + field(2, listed), content_type=PROTOBUF)

    server, connection = stub(answer)

    assert listing(connection, PODS, pod_format()).items == []
    assert {asked.query["limit"] for asked in server.asked} == {"100"}


def test_an_object_that_is_too_large_alone_is_refused_and_pages_shrink_to_it(stub: StubMaker) -> None:
    server, connection = stub(lambda _: Answer(b" " * (LARGEST + 1)))

    with pytest.raises(TooLarge):
        list_all(connection, CORE / "secrets", json_format(OnlyMetadata, lambda one: one), page=4)
    assert [asked.query["limit"] for asked in server.asked] == ["4", "2", "1"]


@in_both_ways
def test_a_list_that_never_goes_on_ends(stub: StubMaker, listing: Listing) -> None:
    document = {"kind": "PodDisruptionBudgetList", "metadata": {"continue": "again"}, "items": []}
    # It ends here, so that the test fails at once where the list would be asked for without end.
    last = {"kind": "PodDisruptionBudgetList", "metadata": {}, "items": []}
    server, connection = stub(lambda _: json_answer(document if len(server.asked) < 5 else last))

    with pytest.raises(Unreachable, match="has no end"):
        listing(connection, BUDGETS, budget_format())
