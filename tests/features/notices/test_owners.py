"""Which owners of workloads get which messages, and which addresses are not used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.notices.deliveries import delivery_of
from reconciler.features.notices.owners import MOST, Namespace, addresses, for_owners
from reconciler.model.limits import ADDRESSES
from tests.features.notices.following import entries, message
from tests.laws.hits import Hits
from tests.support.searching import examples

MAIL = "mail: {server: localhost, from: a@example.com, to: [all@example.com]}"
BOT = "slack: {token: x, channel: ops}"
DOMAINS = "to: {namespaceAnnotation: team.example.com/mail, domains: [example.com]}"
CHANNEL = "to: {namespaceLabel: channel}"
(BY_MAIL,) = entries(f"notify: [{{name: all, {MAIL}, {DOMAINS}}}]")
(BY_CHAT,) = entries(f"notify: [{{name: all, {BOT}, {CHANNEL}}}]")


def annotated(text: str) -> Namespace:
    return Namespace(annotations={"team.example.com/mail": text})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("shop@example.com", ["shop@example.com"]),
        ("shop@Example.com, cart@example.com", ["shop@Example.com", "cart@example.com"]),
        ("somebody@elsewhere.example", []),
        ("shop@example.com\nBcc: x@example.com", []),
        ("shop@example.com.evil.example", []),
        ("", []),
        (",".join(["a@example.com"] * 1000), ["a@example.com"] * 73),
        # The last one that is read is cut, and may be the address of somebody else.
        (f"{'x' * 947},{'y' * 64}@example.company", []),
    ],
)
def test_mail_goes_only_to_the_domains_of_the_settings(text: str, found: list[str]) -> None:
    assert list(addresses(BY_MAIL, annotated(text))) == found


@pytest.mark.parametrize(("text", "found"), [("shop-alerts", ["shop-alerts"]), ("a b", []), ("x" * 81, [])])
def test_a_channel_is_the_name_of_one(text: str, found: list[str]) -> None:
    assert list(addresses(BY_CHAT, Namespace(labels={"channel": text}))) == found


def test_each_owner_gets_the_messages_about_nodes_with_own_pods() -> None:
    delivery = delivery_of(
        BY_MAIL, (message(node="a"), message(node="b"), message(node="c")), ZoneInfo("UTC")
    )
    namespaces = {
        "shop": annotated("shop@example.com"),
        "cart": annotated("cart@example.com"),
        "ops": annotated("all@example.com"),
        "other": Namespace(),
    }
    on_node = {"a": ("cart", "shop"), "b": ("shop", "ops"), "c": ("other", "gone")}
    owners = for_owners(BY_MAIL, delivery, on_node, namespaces, ZoneInfo("UTC"))
    found = owners.deliveries

    assert owners.cut == ()
    assert [(one.recipient, [each.node for each in one.messages]) for one in found] == [
        ("cart@example.com", ["a"]),
        ("shop@example.com", ["a", "b"]),
    ]
    assert found[0].title == "node a: drain started"


def shares(of: Mapping[str, Sequence[str]]) -> tuple[list[str], tuple[str, ...]]:
    """The addresses that get a message about a node with pods of these namespaces, and the cut namespaces."""
    namespaces = {name: annotated(",".join(given)) for name, given in of.items()}
    delivery = delivery_of(BY_MAIL, (message(node="a"),), ZoneInfo("UTC"))
    found = for_owners(BY_MAIL, delivery, {"a": tuple(of)}, namespaces, ZoneInfo("UTC"))
    return [one.recipient for one in found.deliveries], found.cut


def test_a_namespace_with_many_addresses_leaves_the_others_theirs() -> None:
    many = [f"a{number}@example.com" for number in range(60)]

    served, cut = shares({"greedy": many, "shop": ["shop@example.com", "cart@example.com"]})

    assert set(served) == {*many[:ADDRESSES], "shop@example.com", "cart@example.com"}
    assert cut == ("greedy",)


SHARED = Hits()


@SHARED.at_least(10)
@settings(max_examples=examples(40))
@given(
    st.dictionaries(
        st.integers(0, MOST - 1).map(lambda number: f"n{number}"), st.integers(1, 40), max_size=MOST
    ),
    st.booleans(),
)
def test_each_namespace_has_its_share_and_what_is_left_out_is_said(
    counts: dict[str, int], full: bool
) -> None:
    if full:
        counts |= {f"n{number}": 40 for number in range(MOST) if f"n{number}" not in counts}
    wanted = {
        name: [f"{name}-{number}@example.com" for number in range(count)] for name, count in counts.items()
    }
    served, cut = shares(wanted)
    by_name = {name: [one for one in served if one in given] for name, given in wanted.items()}
    SHARED.count(len(served) == MOST)

    assert len(served) == len(set(served)) <= MOST
    assert all(1 <= len(got) <= ADDRESSES for got in by_name.values())
    # No namespace gets a second address before each of the others has its first, and so on.
    most = max(map(len, by_name.values()), default=0)
    assert all(len(got) >= min(most - 1, len(wanted[name])) for name, got in by_name.items())
    assert cut == tuple(sorted(name for name, got in by_name.items() if len(got) < len(wanted[name])))
