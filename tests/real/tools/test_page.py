"""The page in a real browser, as `serve` sends it: what it loads and logs, and whether all can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.health import HealthServer
from jobs.runtime.process import Observer, Passed
from reconciler.features.page import html
from reconciler.features.page.live import LivePage
from reconciler.model.findings import KnownFindings
from reconciler.model.panels import Panel, Step
from tests.features.page.scene import facts
from tests.features.page.test_page import NASTY
from tests.support import builders
from tests.support.builders import NOW
from tests.support.controlplane.processes import wait_for
from tests.support.tools.chromium import Chromium, Tab

SETTINGS = "windows: [{name: nights, start: '22:00', end: '05:00'}]"
LOOKS = [
    pytest.param((width, dark), id=f"{width}px, {'dark' if dark else 'light'}")
    for width in (390, 1024, 1600)
    for dark in (False, True)
]


@pytest.fixture(scope="module")
def browser(chromium_program: Path) -> Iterator[Chromium]:
    with Chromium(chromium_program) as running:
        yield running


@pytest.fixture(scope="module")
def page() -> LivePage:
    made = facts()
    live = LivePage(lambda: "", lambda: NOW, lambda _: made.readiness)
    live.keep(made.history.ended)
    live.after(Passed(made.plan, builders.settings(SETTINGS), (), rehearsed=False))
    return live


@pytest.fixture(scope="module")
def url(page: LivePage) -> Iterator[str]:
    with HealthServer(("127.0.0.1", 0), {}, documents=page.documents) as server:
        yield f"http://127.0.0.1:{server.port}/"


@pytest.fixture(params=LOOKS)
def tab(request: pytest.FixtureRequest, browser: Chromium, url: str) -> Iterator[Tab]:
    width, dark = request.param
    with browser.tab(width, dark=dark) as opened:
        opened.open(url)
        yield opened


def test_the_browser_logs_nothing_requests_nothing_else_and_needs_no_scrolling_aside(
    tab: Tab, url: str
) -> None:
    wide = tab.evaluate("document.documentElement.scrollWidth > innerWidth")

    assert not wide
    assert tab.said == []
    assert tab.requested == [url]


def test_axe_finds_nothing_that_keeps_people_from_reading_it(tab: Tab, axe_script: Path) -> None:
    tab.evaluate(axe_script.read_text(encoding="utf-8"))
    found: dict[str, Any] = tab.evaluate("axe.run(document, {resultTypes: ['violations', 'incomplete']})")

    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found["violations"]] == []
    assert "color-contrast" in {one["id"] for one in found["passes"]}


class First(Observer):
    """Shows a panel with long names."""

    def panels(self, passed: Passed, findings: KnownFindings | None) -> Sequence[Panel]:
        name = "aks-np-12345678-vmss000001"
        rows = tuple(("2026-11-21T12:00:00Z", name, "in time", "PDB " + "x" * 120) for _ in range(30))
        todo = ("mode: Enforce", f'nodeSelector: {{agentpool: "{"n" * 60}"}}')
        steps = (Step("First", True, "done"), Step("Then", False, "not yet", todo, "in the settings"))
        heads = ("Announced", "Node", "Would be", "Why")
        return (Panel("What would have been", "In 12 days …", "", "The way", steps, "Each", heads, rows),)


@pytest.mark.parametrize("look", LOOKS)
def test_what_features_show_first_is_the_first_on_the_page_and_reads_as_well(
    browser: Chromium, axe_script: Path, look: tuple[int, bool]
) -> None:
    made = facts()
    live = LivePage(lambda: "", lambda: NOW, lambda _: made.readiness, others=First())
    live.after(Passed(made.plan, builders.settings(SETTINGS), (), rehearsed=False))
    width, dark = look
    with (
        HealthServer(("127.0.0.1", 0), {}, documents=live.documents) as server,
        browser.tab(width, dark=dark) as tab,
    ):
        tab.open(f"http://127.0.0.1:{server.port}/")
        tab.evaluate("document.querySelector('main details').open = true")
        wide = tab.evaluate("document.documentElement.scrollWidth > innerWidth")
        first = tab.evaluate("document.querySelector('main h2').textContent")
        command = tab.evaluate("document.querySelector('pre.command').innerText")
        tab.evaluate(axe_script.read_text(encoding="utf-8"))
        found: dict[str, Any] = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        said = list(tab.said)

    assert not wide
    assert first == "What would have been"
    assert command.splitlines()[0] == "mode: Enforce"
    assert said == []
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found["violations"]] == []


def test_the_keyboard_leads_past_the_navigation_first(browser: Chromium, url: str) -> None:
    with browser.tab(1280) as tab:
        tab.open(url)
        tab.press("Tab")

        assert tab.evaluate("document.activeElement.textContent") == "Go to what is wrong now"
        assert tab.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


def test_the_first_screen_of_a_phone_says_who_must_do_something_and_whether_anything_is_wrong(
    browser: Chromium, url: str
) -> None:
    with browser.tab(390) as tab:
        tab.open(url)

        assert tab.evaluate("document.getElementById('who').getBoundingClientRect().bottom") < 400
        verdict = tab.evaluate("document.querySelector('.verdict').getBoundingClientRect().bottom")
        assert 0 < verdict < 400
        assert " wrong" in tab.evaluate("document.querySelector('.verdict').innerText")


def test_a_command_is_selected_as_a_whole_by_a_click(browser: Chromium, url: str) -> None:
    with browser.tab(1280) as tab:
        tab.open(url)
        command = "document.querySelector('#who ~ ul .command')"
        at = tab.evaluate(f"(r => [r.left + 20, r.top + 8])({command}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            tab.send("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)
        selected = tab.evaluate("getSelection().toString()")

        assert selected == tab.evaluate(f"{command}.textContent")
        assert selected.startswith("reconciler ")


def test_the_page_comes_again_and_stays_where_its_reader_is(
    browser: Chromium, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "REFRESH", timedelta(seconds=1))
    with browser.tab(1280) as tab:
        tab.open(f"{url}?q=vmss")
        tab.evaluate("window.here = true; scrollTo(0, 900)")
        wait_for("the next page", lambda: tab.evaluate("window.here === undefined && scrollY > 0"))

        assert tab.evaluate("scrollY") == 900
        assert tab.evaluate("location.search") == "?q=vmss"


def test_the_details_of_many_cases_are_folded_and_a_link_unfolds_those_of_one(
    browser: Chromium, url: str
) -> None:
    details = "getComputedStyle(document.querySelector('#node-aks-web-31415926-vmss000032 dl')).display"
    with browser.tab(1280) as tab:
        tab.open(f"{url}?refresh=off")
        assert tab.evaluate(details) == "none"
        tab.evaluate("location.hash = 'node-aks-web-31415926-vmss000032'")
        assert tab.evaluate(details) == "grid"
        tab.open(f"{url}?q=aks-web-31415926-vmss000032")
        assert tab.evaluate(details) == "grid"


def test_a_page_that_is_not_loaded_again_says_that_it_is_old(browser: Chromium, url: str) -> None:
    with browser.tab(1280) as tab:
        tab.open(f"{url}?refresh=off")
        shown = "getComputedStyle(document.querySelector('.stale')).visibility"
        assert tab.evaluate(shown) == "hidden"
        tab.evaluate("document.getAnimations().forEach(animation => animation.currentTime = 121000), 1")

        assert tab.evaluate(shown) == "visible"


def test_the_form_leads_to_the_chosen_nodes(browser: Chromium, url: str) -> None:
    with browser.tab(1280) as tab:
        tab.open(url)
        tab.evaluate("document.querySelector('.filter details').open = true")
        tab.evaluate("document.querySelector('input[name=q]').focus()")
        tab.send("Input.insertText", text="ledger")
        tab.evaluate("document.querySelector('form button').click()")
        wait_for("the chosen nodes", lambda: "q=ledger" in tab.evaluate("location.search"))
        wait_for("the page", lambda: tab.evaluate("document.readyState") == "complete")

        assert tab.said == []
        assert "2 of 150 nodes are shown: text ledger." in tab.evaluate("document.body.innerText")


def test_it_prints_in_black_on_white(browser: Chromium, url: str) -> None:
    with browser.tab(1280, dark=True) as tab:
        tab.open(url)
        tab.send("Emulation.setEmulatedMedia", media="print")

        assert tab.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert len(re.findall(rb"/Type\s*/Page\b", tab.pdf())) in range(2, 10)


def test_text_from_outside_runs_nothing(browser: Chromium, page: LivePage) -> None:
    made = facts()
    hostile = LivePage(lambda: NASTY, lambda: NOW)
    hostile.after(Passed(made.plan, builders.settings(), (), rehearsed=False))
    make = partial(HealthServer, ("127.0.0.1", 0), {}, documents=hostile.documents)
    with make() as server, browser.tab(1280) as tab:
        url = f"http://127.0.0.1:{server.port}/"
        tab.open(url)

        assert "<script>alert(1)</script>" in tab.evaluate("document.body.innerText")
        assert tab.evaluate("document.scripts.length") == 0
        assert (tab.said, tab.requested) == ([], [url])


def test_the_policy_of_the_page_permits_no_script_and_no_other_style(browser: Chromium, url: str) -> None:
    add = "document.head.appendChild(Object.assign(document.createElement('{0}'), {{textContent: '{1}'}}))"
    with browser.tab(1280) as tab:
        tab.open(url)
        tab.evaluate(f"{add.format('script', 'window.ran = true')}, 1")
        tab.evaluate(f"{add.format('style', 'body {color: lime !important}')}, 1")

        assert tab.evaluate("window.ran === undefined")
        assert tab.evaluate("getComputedStyle(document.body).color") != "rgb(0, 255, 0)"
