"""Random nodes and pods as JSON documents, and any document as the API server's protobuf."""

import json
from datetime import datetime
from typing import Any

from hypothesis import strategies as st

from reconciler.kubernetes.wire import protobuf

Object = dict[str, Any]

names = st.sampled_from(["a", "b.example", "node-maintenance.dev/record", "node-maintenance.devil/x", "é"])
texts = st.text(max_size=8)
quantities = st.dictionaries(names, st.sampled_from(["4", "7820m", "30210804Ki", "1e3"]), max_size=2)
# Hypothesis wants its bounds naive.
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ")
)


def sometimes(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    """An object in which every field may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


def some(each: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """A short list."""
    return st.lists(each, max_size=3)


metadata = sometimes(
    name=texts,
    namespace=texts,
    uid=texts,
    resourceVersion=texts,
    creationTimestamp=moments | st.none(),
    deletionTimestamp=moments,
    labels=st.dictionaries(names, texts, max_size=4),
    annotations=st.dictionaries(names, texts, max_size=4),
    ownerReferences=some(
        sometimes(kind=texts, name=texts, apiVersion=texts, uid=texts, controller=st.booleans())
    ),
    finalizers=some(texts),
)
requests = sometimes(requests=quantities)
containers = some(sometimes(resources=requests, restartPolicy=st.sampled_from(["Always", ""])))
keys = names | st.just("node-maintenance.dev/maintenance-state")
requirements = some(sometimes(key=keys, operator=st.sampled_from(["In", "Exists"]), values=some(texts)))
nodes = st.fixed_dictionaries(
    {"metadata": metadata},
    optional={
        "spec": sometimes(
            providerID=texts,
            unschedulable=st.booleans(),
            taints=some(sometimes(key=texts, value=texts, effect=texts)),
        ),
        "status": sometimes(
            allocatable=quantities,
            conditions=some(
                sometimes(
                    type=st.sampled_from(["Ready", "VMEventScheduled", "Other"]),
                    status=texts,
                    reason=texts,
                    message=texts,
                    lastHeartbeatTime=moments | st.none(),
                    lastTransitionTime=moments,
                )
            ),
            nodeInfo=sometimes(bootID=texts, kubeletVersion=texts),
        ),
    },
)
pods = st.fixed_dictionaries(
    {"metadata": metadata},
    optional={
        "spec": sometimes(
            volumes=some(sometimes(emptyDir=st.just({}), persistentVolumeClaim=sometimes(claimName=texts))),
            containers=containers,
            initContainers=containers,
            terminationGracePeriodSeconds=st.integers(0, 2**40),
            nodeSelector=st.dictionaries(names, texts, max_size=2),
            nodeName=texts,
            affinity=sometimes(
                nodeAffinity=sometimes(
                    requiredDuringSchedulingIgnoredDuringExecution=sometimes(
                        nodeSelectorTerms=some(
                            sometimes(matchExpressions=requirements, matchFields=requirements)
                        )
                    ),
                    preferredDuringSchedulingIgnoredDuringExecution=some(
                        sometimes(preference=sometimes(matchExpressions=requirements))
                    ),
                ),
                podAffinity=st.just({}),
                podAntiAffinity=st.just({}),
            ),
            tolerations=some(sometimes(key=texts, operator=texts, value=texts, effect=texts)),
            priorityClassName=texts,
            priority=st.integers(-(2**31), 2**31 - 1),
            overhead=quantities,
            topologySpreadConstraints=some(st.just({})),
        ),
        "status": sometimes(
            phase=texts,
            conditions=some(
                sometimes(type=st.sampled_from(["Ready", "Other"]), status=st.sampled_from(["True", "False"]))
            ),
        ),
    },
)


def as_json(kind: str, items: list[Object], token: str = "") -> bytes:
    """A list as JSON."""
    meta = {"resourceVersion": "7", "continue": token}
    return json.dumps({"kind": kind, "apiVersion": "v1", "metadata": meta, "items": items}).encode()


MESSAGES = {"Node": protobuf.Node, "Pod": protobuf.Pod, "PodDisruptionBudget": protobuf.PodDisruptionBudget}


def as_protobuf(kind: str, items: list[Object], token: str = "", version: str = "7") -> bytes:
    """A list as Kubernetes' protobuf."""
    message = MESSAGES[kind.removesuffix("List")]
    meta = protobuf.ListMeta(resourceVersion=version, **{"continue": token})
    raw = field(1, meta.SerializeToString())
    raw += b"".join(field(2, encoded(message(), item)) for item in items)
    return envelope(kind, raw)


def envelope(kind: str, raw: bytes) -> bytes:
    """What stands around every protobuf body: the magic and a runtime.Unknown, its empty fields too."""
    type_meta = protobuf.TypeMeta(apiVersion="v1", kind=kind).SerializeToString()
    return b"k8s\x00" + field(1, type_meta) + field(2, raw) + field(3, b"") + field(4, b"")


def negotiated(path: str, body: bytes, *, watch: bool = False) -> bytes | None:
    """What a server of JSON says, as the API server says it in protobuf; None if the path has only JSON."""
    *_, before, last = path.split("/")
    of_lists = {"nodes": "Node", "pods": "Pod", "poddisruptionbudgets": "PodDisruptionBudget"}
    kind = of_lists.get(last) or of_lists.get(before)
    if kind is None:
        return None
    if watch:
        events = [json.loads(line) for line in body.splitlines()]
        return b"".join(_frame(kind, event) for event in events)
    document = json.loads(body)
    if last not in of_lists:
        return envelope(kind, encoded(MESSAGES[kind](), document))
    meta = document.get("metadata") or {}
    version, token = meta.get("resourceVersion", ""), meta.get("continue", "")
    return as_protobuf(document.get("kind", ""), document.get("items") or [], token, version)


def _frame(kind: str, event: Object) -> bytes:
    """An event of a watch, with its length before it."""
    item = event["object"]
    of_status = item.get("kind") == "Status"
    raw = envelope(
        "Status" if of_status else kind, encoded(protobuf.Status() if of_status else MESSAGES[kind](), item)
    )
    message = protobuf.WatchEvent(type=event["type"])
    message.object.raw = raw
    frame: bytes = message.SerializeToString()
    return len(frame).to_bytes(4, "big") + frame


def encoded(message: Any, document: Object) -> bytes:
    """One object as protobuf."""
    _fill(message, document)
    result: bytes = message.SerializeToString()
    return result


def _fill(message: Any, document: Object) -> None:
    if message.DESCRIPTOR.name == "Volume":
        # JSON has the source's fields beside the volume's name.
        message = message.volumeSource
    message.SetInParent()
    for name, value in document.items():
        known = message.DESCRIPTOR.fields_by_name.get(name)
        if value is None or known is None:
            continue
        if known.message_type is None:
            if known.is_repeated:
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)
        elif known.message_type.GetOptions().map_entry:
            for key, one in value.items():
                if known.message_type.fields_by_name["value"].message_type is None:
                    getattr(message, name)[key] = one
                else:
                    getattr(message, name)[key].string = str(one)
        elif known.message_type.name == "Time":
            getattr(message, name).seconds = int(datetime.fromisoformat(value).timestamp())
        elif known.is_repeated:
            for one in value:
                _fill(getattr(message, name).add(), one)
        else:
            _fill(getattr(message, name), value)


def field(number: int, content: bytes | str) -> bytes:
    """A field of wire type 2."""
    found = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(found)) + found


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
