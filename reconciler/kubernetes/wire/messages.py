"""Kubernetes' protobuf messages, cut down to the fields that we read.

The decoder skips the fields that a message class does not name: most of a node (its images) and of a pod.
Field numbers are part of the API and never change. They come from the files generated.proto of k8s.io/api
(core/v1, policy/v1) and k8s.io/apimachinery (apis/meta/v1, runtime, api/resource) at v0.36. The table below
replaces a .proto file and its build step. A line is `name number type`; `*` repeats, `<V>` is a map from
string to V.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

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
  bootID 3 string
  kubeletVersion 7 string

PodDisruptionBudget
  metadata 1 BudgetMeta
  spec 2 BudgetSpec
  status 3 BudgetStatus
BudgetMeta
  name 1 string
  namespace 3 string
  resourceVersion 6 string
BudgetSpec
  selector 2 LabelSelector
  unhealthyPodEvictionPolicy 4 string
BudgetStatus
  disruptionsAllowed 3 int32
  currentHealthy 4 int32
  desiredHealthy 5 int32
  expectedPods 6 int32
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
    """Return the descriptor of the .proto file that the table replaces."""
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
Status = _message("Status")
WatchEvent = _message("WatchEvent")
Node = _message("Node")
Pod = _message("Pod")
PodDisruptionBudget = _message("PodDisruptionBudget")
