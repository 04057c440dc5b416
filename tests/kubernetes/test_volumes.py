"""PersistentVolumes as the API server lists them: which are read, and what is too large to read."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.kubernetes.workloads import TERMS, Volumes
from reconciler.model.errors import Forbidden
from reconciler.model.pod import Volume
from reconciler.model.selector import Requirement
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status

Object = dict[str, Any]
ZONE = {"key": "zone", "operator": "In", "values": ["1"]}
FIELD = {"key": "metadata.name", "operator": "In", "values": ["a"]}


def volume(phase: str = "Bound", **spec: object) -> Object:
    claim = {"namespace": "shop", "name": "data"}
    return {"metadata": {"name": "pv"}, "spec": {"claimRef": claim, **spec}, "status": {"phase": phase}}


def affine(*terms: Object) -> Object:
    return volume(nodeAffinity={"required": {"nodeSelectorTerms": [*terms]}})


@pytest.fixture
def listed(stub: StubMaker) -> tuple[list[Object], Volumes]:
    """The objects that the server lists, and a reader of them."""
    items: list[Object] = []

    def answer(asked: Asked) -> Answer:
        if not items:
            return status(403, "Forbidden", "no")
        page = {"kind": "PersistentVolumeList", "metadata": {"resourceVersion": "1"}, "items": items}
        return json_answer(page) if asked.path == "/api/v1/persistentvolumes" else status(404)

    return items, Volumes(stub(answer)[1])


@pytest.mark.parametrize(
    ("found", "read"),
    [
        pytest.param(volume(), [()], id="no affinity"),
        pytest.param(volume(nodeAffinity=None), [()], id="null"),
        pytest.param(volume("Released"), [], id="the claim is gone"),
        pytest.param(volume("Available", claimRef=None), [], id="no claim yet"),
        pytest.param(
            affine({"matchExpressions": [ZONE]}, {"matchFields": [FIELD]}),
            [((Requirement("zone", "In", ("1",)),), (Requirement("metadata.name", "In", ("a",)),))],
            id="expressions and fields",
        ),
        pytest.param(affine({}), [((),)], id="an empty term"),
        pytest.param(affine(*[{"matchExpressions": [ZONE]}] * (TERMS + 1)), [()], id="too many terms"),
        pytest.param(affine({"matchExpressions": [ZONE] * (TERMS + 1)}), [()], id="too many expressions"),
        pytest.param(
            affine({"matchExpressions": [{**ZONE, "values": ["1"] * (TERMS + 1)}]}),
            [()],
            id="too many values",
        ),
    ],
)
def test_which_volumes_are_read(
    listed: tuple[list[Object], Volumes], found: Object, read: list[tuple[tuple[Requirement, ...], ...]]
) -> None:
    items, volumes = listed
    items.append(found)

    assert [*volumes.volumes()] == [Volume("pv", "shop", "data", affinity) for affinity in read]


def test_a_list_that_is_refused_is_an_error_with_the_permission(listed: tuple[list[Object], Volumes]) -> None:
    with pytest.raises(Forbidden) as refused:
        listed[1].volumes()
    assert refused.value.needs == "list persistentvolumes"
