"""Kubernetes' protobuf: its messages, cut down to the fields that we read, and its framing.

The decoder skips the fields that a message class does not name: most of a node (its images) and of a pod.
Field numbers are part of the API and never change. They come from the files generated.proto of k8s.io/api
(core/v1, policy/v1) and k8s.io/apimachinery (apis/meta/v1, runtime, api/resource) at v0.36. The table below
replaces a .proto file and its build step. A line is `name number type`; `*` repeats, `<V>` is a map from
string to V. `GlancedNode` is a Node of which most messages stay encoded: they are compared, not read.

A body is `k8s\\0`, then a runtime.Unknown. Its field 2 (raw) holds the object, or the list: ListMeta (1) and
the items (2), one after the other (kubernetes.io, API concepts, "Protobuf encoding"). Every list has the same
form, so `List` leaves its items encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from reconciler.model.errors import Rejected, Unreachable

DecodeError = message.DecodeError

_PACKAGE = "reconciler"

_TABLE = """
Unknown
  typeMeta 1 TypeMeta
  raw 2 bytes
TypeMeta
  apiVersion 1 string
  kind 2 string
ListMeta
  resourceVersion 2 string
  continue 3 string
List
  metadata 1 ListMeta
  items 2 *bytes
ObjectMeta
  name 1 string
  namespace 3 string
  uid 5 string
  resourceVersion 6 string
  creationTimestamp 8 Time
  deletionTimestamp 9 Time
  deletionGracePeriodSeconds 10 int64
  labels 11 <string>
  annotations 12 <string>
  ownerReferences 13 *OwnerReference
  finalizers 14 *string
OwnerReference
  kind 1 string
  name 3 string
  uid 4 string
  apiVersion 5 string
  controller 6 bool
Time
  seconds 1 int64
  nanos 2 int32
Quantity
  string 1 string

Status
  message 3 string
  reason 4 string
  details 5 StatusDetails
  code 6 int32
StatusDetails
  causes 4 *StatusCause
  retryAfterSeconds 5 int32
StatusCause
  reason 1 string
  message 2 string
WatchEvent
  type 1 string
  object 2 RawExtension
RawExtension
  raw 1 bytes

Node
  metadata 1 ObjectMeta
  spec 2 NodeSpec
  status 3 NodeStatus
NodeSpec
  providerID 3 string
  unschedulable 4 bool
  taints 5 *Taint
Taint
  key 1 string
  value 2 string
  effect 3 string
  timeAdded 4 Time
NodeStatus
  allocatable 2 <Quantity>
  conditions 4 *NodeCondition
  nodeInfo 7 NodeSystemInfo
NodeCondition
  type 1 string
  status 2 string
  lastHeartbeatTime 3 Time
  lastTransitionTime 4 Time
  reason 5 string
  message 6 string
NodeSystemInfo
  systemUUID 2 string
  bootID 3 string
  kubeletVersion 7 string

GlancedNode
  metadata 1 GlancedMeta
  spec 2 bytes
  status 3 GlancedStatus
GlancedMeta
  name 1 bytes
  uid 5 bytes
  resourceVersion 6 bytes
  labels 11 *bytes
  annotations 12 *bytes
  finalizers 14 *bytes
GlancedStatus
  allocatable 2 *bytes
  conditions 4 *bytes
  nodeInfo 7 bytes

PodDisruptionBudget
  metadata 1 BudgetMeta
  spec 2 BudgetSpec
  status 3 BudgetStatus
BudgetMeta
  name 1 string
  namespace 3 string
  resourceVersion 6 string
BudgetSpec
  minAvailable 1 IntOrString
  selector 2 LabelSelector
  unhealthyPodEvictionPolicy 4 string
IntOrString
  type 1 int64
BudgetStatus
  disruptionsAllowed 3 int32
  currentHealthy 4 int32
  desiredHealthy 5 int32
  expectedPods 6 int32
  conditions 7 *BudgetCondition
BudgetCondition
  type 1 string
  status 2 string
  reason 5 string
  message 6 string
LabelSelector
  matchLabels 1 <string>
  matchExpressions 2 *NodeSelectorRequirement

Pod
  metadata 1 ObjectMeta
  spec 2 PodSpec
  status 3 PodStatus
PodSpec
  volumes 1 *Volume
  containers 2 *Container
  terminationGracePeriodSeconds 4 int64
  nodeSelector 7 <string>
  nodeName 10 string
  affinity 18 Affinity
  initContainers 20 *Container
  tolerations 22 *Toleration
  priorityClassName 24 string
  priority 25 int32
  overhead 32 <Quantity>
  topologySpreadConstraints 33 *Empty
Empty
Volume
  volumeSource 2 VolumeSource
VolumeSource
  emptyDir 2 Empty
  persistentVolumeClaim 10 PersistentVolumeClaimVolumeSource
PersistentVolumeClaimVolumeSource
  claimName 1 string
Container
  resources 8 ResourceRequirements
  restartPolicy 24 string
ResourceRequirements
  requests 2 <Quantity>
Affinity
  nodeAffinity 1 NodeAffinity
  podAffinity 2 Empty
  podAntiAffinity 3 Empty
NodeAffinity
  requiredDuringSchedulingIgnoredDuringExecution 1 NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution 2 *PreferredSchedulingTerm
PreferredSchedulingTerm
  preference 2 NodeSelectorTerm
NodeSelector
  nodeSelectorTerms 1 *NodeSelectorTerm
NodeSelectorTerm
  matchExpressions 1 *NodeSelectorRequirement
  matchFields 2 *NodeSelectorRequirement
NodeSelectorRequirement
  key 1 string
  operator 2 string
  values 3 *string
Toleration
  key 1 string
  operator 2 string
  value 3 string
  effect 4 string
PodStatus
  phase 1 string
  conditions 2 *PodCondition
PodCondition
  type 1 string
  status 2 string
  reason 5 string
  message 6 string
"""

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
}


def _file(table: str) -> descriptor_pb2.FileDescriptorProto:
    # proto2, because there each field knows whether it was present: grace 0 is not an absent grace.
    proto = descriptor_pb2.FileDescriptorProto(name="reconciler.proto", package=_PACKAGE, syntax="proto2")
    for line in table.splitlines():
        if not line.strip():
            continue
        if not line.startswith(" "):
            current = proto.message_type.add(name=line.strip())
            continue
        name, number, kind = line.split()
        field = current.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
        if kind.startswith("<"):
            _type(field, _entry(current, name, kind[1:-1]))
        else:
            _type(field, kind.removeprefix("*"))
        if kind[0] in "<*":
            field.label = _Field.LABEL_REPEATED
    return proto


def _type(field: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"


def _entry(owner: descriptor_pb2.DescriptorProto, name: str, kind: str) -> str:
    """Add the nested message by which protobuf writes a map; return its name."""
    entry = owner.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
    entry.options.map_entry = True
    for number, (part, its_kind) in enumerate((("key", "string"), ("value", kind)), start=1):
        _type(entry.field.add(name=part, number=number, label=_Field.LABEL_OPTIONAL), its_kind)
    return f"{owner.name}.{entry.name}"


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file(_TABLE))


def _message(name: str) -> Any:
    """Return the class of one message; its fields are made at run time, so types do not know them."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Unknown = _message("Unknown")
TypeMeta = _message("TypeMeta")
ListMeta = _message("ListMeta")
List = _message("List")
Status = _message("Status")
WatchEvent = _message("WatchEvent")
Node = _message("Node")
GlancedNode = _message("GlancedNode")
NodeCondition = _message("NodeCondition")
Pod = _message("Pod")
PodDisruptionBudget = _message("PodDisruptionBudget")


MAGIC = b"k8s\x00"
CHUNK = 1 << 18
"""Bytes to read from the stream at once."""

LARGEST = 4 << 20
"""Bytes of one piece. etcd stores no object above 1.5 MiB, so a greater length than this is garbage."""


class Cutter:
    """Cuts pieces of known length from a stream of chunks; `position` counts the bytes taken."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        """Use this function, which reads up to a number of bytes, and returns b"" at the end."""
        self._read = read
        self._buffer = b""
        self._at = 0
        self._before = 0

    @property
    def position(self) -> int:
        """Bytes taken so far."""
        return self._before + self._at

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes; Unreachable if the stream ends before them."""
        if len(self._buffer) - self._at < size:
            self._fill(size)
        start = self._at
        self._at += size
        return memoryview(self._buffer)[start : self._at]

    def varint(self) -> int:
        """Return the next number in protobuf's variable-length encoding."""
        value = shift = 0
        while True:
            if self._at == len(self._buffer):
                self._fill(1)
            byte = self._buffer[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise Rejected("the protobuf is broken: a number without an end")

    def ended(self) -> bool:
        """Whether the stream has ended."""
        if self._at < len(self._buffer):
            return False
        self._before += self._at
        self._buffer, self._at = self._read(CHUNK), 0
        return not self._buffer

    def _fill(self, size: int) -> None:
        """Fill the buffer with at least `size` bytes; each byte is copied at most twice."""
        if size > LARGEST:
            raise Rejected(f"the protobuf is broken: a piece of {size} bytes")
        self._before += self._at
        pieces = [self._buffer[self._at :]]
        have = len(pieces[0])
        while have < size:
            chunk = self._read(CHUNK)
            if not chunk:
                raise Unreachable(f"the stream ended in the middle, {size - have} bytes short")
            pieces.append(chunk)
            have += len(chunk)
        self._buffer, self._at = b"".join(pieces), 0


def unwrapped(frame: bytes | memoryview) -> bytes:
    """Return the content of a `k8s\\0` envelope, still encoded."""
    raw: bytes = _envelope(frame).raw
    return raw


def read_list(body: bytes, kind: str) -> tuple[Any, Sequence[bytes]]:
    """Return the ListMeta of a list of that kind, and its items, still encoded.

    Raises Rejected if it is another kind or broken.
    """
    envelope = _envelope(memoryview(body))
    check_kind(kind, envelope.typeMeta.kind)
    listed = _parse(List, envelope.raw)
    if not listed.HasField("metadata"):
        raise Rejected(f"the {kind} has no metadata")
    return listed.metadata, listed.items


def check_kind(kind: str, answered: str) -> None:
    """Raise Rejected if the answer is of another kind than was requested."""
    if answered != kind:
        raise Rejected(f"asked for a {kind}, the answer is a {answered or 'thing without a kind'}")


def check_magic(begin: bytes | memoryview) -> None:
    """Raise Rejected if a body does not begin as Kubernetes' protobuf does."""
    if begin != MAGIC:
        raise Rejected("the answer has the content type of protobuf, but does not begin as Kubernetes' does")


def _envelope(frame: bytes | memoryview) -> Any:
    check_magic(frame[: len(MAGIC)])
    return _parse(Unknown, frame[len(MAGIC) :])


def parse(kind: Any, encoded: bytes | memoryview) -> Any:
    """Decode one message; Rejected if it is broken."""
    return _parse(kind, encoded)


def _parse(kind: Any, encoded: bytes | memoryview) -> Any:
    try:
        return kind.FromString(encoded)
    except DecodeError as error:
        raise Rejected(f"the protobuf is broken: {error}") from error
