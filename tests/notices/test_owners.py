"""Which owners of workloads get which messages, and which addresses are not used."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from reconciler.notices.deliveries import delivery_of
from reconciler.notices.owners import Namespace, addresses, for_owners
from tests.notices.following import entries, message

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
    found = for_owners(BY_MAIL, delivery, on_node, namespaces, ZoneInfo("UTC"))

    assert [(one.recipient, [each.node for each in one.messages]) for one in found] == [
        ("cart@example.com", ["a"]),
        ("shop@example.com", ["a", "b"]),
    ]
    assert found[0].title == "node a: maintenance started"
