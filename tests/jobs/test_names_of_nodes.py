"""The names of nodes that people type: the end is enough, and a wrong one is answered with those meant."""

from __future__ import annotations

import pytest

from jobs.runtime.by_hand import check_nodes, whole_name
from reconciler.model.errors import NotFound

KNOWN = {"aks-np-12345678-vmss000000", "aks-np-12345678-vmss000001", "aks-gpu-8765-vmss000001", "vm-1"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("000000", "aks-np-12345678-vmss000000"),
        ("vm-1", "vm-1"),
        ("000001", "000001"),
        ("np-12345678-vmss000001", "aks-np-12345678-vmss000001"),
        ("vmss", "vmss"),
        ("", ""),
    ],
)
def test_the_end_of_a_name_is_enough_if_one_node_has_it(typed: str, meant: str) -> None:
    assert whole_name(typed, KNOWN) == meant


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("000001", "did you mean one of these? aks-gpu-8765-vmss000001, aks-np-12345678-vmss000001"),
        ("gpu", "did you mean one of these? aks-gpu-8765-vmss000001"),
        ("vm-2", "did you mean vm-1?"),
    ],
)
def test_a_name_that_no_node_has_is_answered_with_those_that_may_be_meant(typed: str, said: str) -> None:
    with pytest.raises(NotFound) as raised:
        check_nodes([typed], KNOWN)

    assert str(raised.value).endswith(f"{typed}: there is no such node; {said}")
