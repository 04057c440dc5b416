"""The filter of the page: which nodes it chooses, and that it hides nothing that is wrong."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime.process import Passed
from reconciler.features.page.chosen import ALL, PageFilter, chosen_by
from reconciler.features.page.facts import History, PageFacts
from reconciler.features.page.html import as_html
from reconciler.features.page.live import page_facts
from reconciler.model.event import Kind
from reconciler.model.values import replace
from tests.features.page.reading import Element, parsed, section
from tests.features.page.scene import facts
from tests.support import builders
from tests.support.builders import NOW, minutes, reported, signal


@pytest.fixture(scope="module")
def scene() -> PageFacts:
    return replace(facts(), served=True)


def shown(facts: PageFacts, query: str) -> Element:
    return parsed(as_html(facts, chosen_by(query)))


def rows(page: Element) -> list[str]:
    return [row.all("th")[0].text.split()[0] for row in section(page, "cases").all("tr")[1:]]


def test_a_pool_has_its_nodes_in_each_part(scene: PageFacts) -> None:
    page = shown(scene, "pool=batch")

    assert rows(page)
    assert all(name.startswith("aks-batch-") for name in rows(page))
    assert "37 nodes by zone" in section(page, "fleet").text
    drawn = [row.text for row in section(page, "timeline").all("th")]
    assert [name for name in drawn if name.startswith("aks-") and "batch" not in name] == []
    assert "37 of 150 nodes are shown: pool batch." in page.text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("q=VMSS000032", {"aks-web-31415926-vmss000032"}, id="part of a name, in any case"),
        pytest.param("q=benchmark+runs&pool=web", {"aks-web-31415926-vmss000032"}, id="what is said of it"),
        pytest.param("q=emergency&state=missed", {"aks-system-31415926-vmss000028"}, id="text of the cloud"),
        pytest.param(
            "namespace=shop", {"aks-web-31415926-vmss00000a", "aks-web-31415926-vmss000051"}, id="namespace"
        ),
        pytest.param("namespace=sho", set[str](), id="a part of a namespace is none"),
        pytest.param("state=draining&pool=nope", set[str](), id="no such pool"),
    ],
)
def test_a_filter_chooses_nodes(scene: PageFacts, query: str, names: set[str]) -> None:
    chosen = chosen_by(query).nodes(scene)

    assert chosen is not None
    assert names <= chosen
    assert bool(names) is bool(chosen)
    assert set(rows(shown(scene, query)) if names else ()) <= chosen


def test_without_a_filter_all_nodes_are_chosen(scene: PageFacts) -> None:
    assert chosen_by("").nodes(scene) is None
    assert chosen_by("refresh=off&pool=&q=+").any is False


def test_what_is_wrong_and_to_be_done_elsewhere_is_counted() -> None:
    readings = {"a": reported(signal(Kind.REBOOT, not_before=NOW + minutes(4)))}
    seen = builders.snapshot(*(builders.node(name, pool=name) for name in "ab"), readings=readings)
    chosen = builders.settings(mode="Finish")
    split = page_facts(Passed(builders.planned(seen, chosen), chosen, rehearsed=False), History(NOW))
    here, elsewhere = shown(split, "pool=a"), shown(split, "pool=b")

    assert "1 thing is wrong" in section(here, "wrong").text
    wrong, who = section(elsewhere, "wrong"), section(elsewhere, "who")
    assert "Nothing is wrong with these nodes Wrong with other nodes: 1" in wrong.text
    assert "Nobody for these nodes Other nodes wait for a person: 1" in who.text
    assert {card.attributes["class"] for card in (wrong, who)} == {"card ask"}
    assert elsewhere.all("title")[0].text == "1 wrong, 1 to do: node maintenance"
    assert "No node of" not in section(elsewhere, "cases").text


def test_the_form_has_what_was_chosen_and_a_link_keeps_it(scene: PageFacts) -> None:
    page = shown(scene, "pool=web&state=missed&namespace=a%22b&q=%3Cscript%3E")
    selected = [option.text for option in page.all("option") if "selected" in option.attributes]
    values = {field.attributes["name"]: field.attributes["value"] for field in page.all("input")}
    stop, stop_to_fill_in = [link.attributes["href"] for link in page.all("a") if link.text == "stop that"]

    assert selected == ["web", "missed, or will be"]
    assert values == {"namespace": 'a"b', "q": "<script>"}
    assert parse_qs(stop.removeprefix("?")) == {
        "pool": ["web"],
        "state": ["missed"],
        "namespace": ['a"b'],
        "q": ["<script>"],
        "refresh": ["off"],
    }
    assert stop_to_fill_in == f"{stop}#filter"
    assert page.all("script") == []


def test_the_form_is_open_where_the_page_does_not_load_itself_again(scene: PageFacts) -> None:
    (form,) = parsed(as_html(scene, ALL, refreshes=False)).by_id("filter").all("details")

    assert "open" in form.attributes
    assert "empties this form" not in form.text


def test_a_namespace_has_its_findings_of_the_readiness(scene: PageFacts) -> None:
    assert "shop/ledger" in section(shown(scene, "namespace=shop"), "readiness").text
    assert "shop/ledger" not in section(shown(scene, "namespace=sho"), "readiness").text


@given(st.text(max_size=60))
def test_any_query_is_a_filter(query: str) -> None:
    chosen_by(query)


@given(st.builds(PageFilter, *[st.text(min_size=1, max_size=60).map(str.strip)] * 4))
def test_the_query_of_a_filter_is_read_as_the_same_filter(chosen: PageFilter) -> None:
    assert chosen_by(chosen.query) == chosen
    assert (chosen.query == "") is (chosen == ALL)
