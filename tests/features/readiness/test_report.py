"""The answer of `reconciler readiness`: a summary on top, the worst first, safe and narrow enough."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reconciler.features.readiness.findings import (
    Finding,
    KeptByPeople,
    PeopleCode,
    Readiness,
    WebhookAnswers,
    WebhookRefusal,
    WorkloadFindings,
)
from reconciler.features.readiness.report import (
    MOST_NAMES,
    MOST_WORKLOADS,
    as_markdown,
    as_text,
    readiness_part,
    to_document,
)
from reconciler.model.findings import FindingCode, Severity, Workload
from reconciler.model.pod import PodSpec
from reconciler.model.problems import Unseen
from reconciler.model.values import replace
from reconciler.report.document import as_json
from tests.docs.pages import named, written
from tests.features.readiness.scene import budget, judged, node, pod
from tests.support.builders import NOW
from tests.support.golden import assert_as_in

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NEVER = budget(desired=2, healthy=2, expected=2)
UNSEEN = Unseen(
    "PersistentVolumes", "list persistentvolumes", "where they can be mounted is not known", "403"
)


def answer(text: str = "x") -> Readiness:
    """Workloads of each severity, and a pod of no controller; `text` is wherever a stranger can write."""
    alone = replace(pod("debug", app="debug"), name=f"debug{text}", owner=None)
    storage = [pod(f"c-{number}", app=f"cart{text}", spec=PodSpec(empty_dir=True)) for number in range(2)]
    refusal = WebhookRefusal("shop", "web-1", f"webhook {text}", text)
    answers = WebhookAnswers(9, left=3, refusals=(refusal,))
    pods = [pod("web-1"), pod("web-2", "b"), alone, *storage, pod("job", app="single")]
    found = judged(pods, NEVER, answers=answers, settings="timeZone: Europe/Berlin")
    held = KeptByPeople(PeopleCode.HOLD, f"held by alice{text}: {text}", f"Ask {text}.", NOW, ("a", "b"))
    return replace(found, unseen=(UNSEEN,), people=(held,))


GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("file", "form"),
    [
        ("readiness.txt", as_text),
        ("readiness.md", as_markdown),
        ("readiness.json", lambda found: as_json({**to_document(found), "program": "VERSION"})),
    ],
)
def test_the_answer_is_as_in_the_golden_file(file: str, form: Callable[[Readiness], str]) -> None:
    assert_as_in(GOLDEN / file, form(answer()))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(width: int) -> None:
    shown = as_text(answer(), width)

    assert max(map(len, shown.splitlines())) <= width
    assert shown.split() == as_text(answer()).split()


def test_where_pods_or_budgets_could_not_be_read_the_summary_does_not_call_the_cluster_ready() -> None:
    assert "0 of 2 nodes would not drain as far as is known" in as_text(
        replace(answer(), unsure=True, blocked=(), workloads=())
    )


def test_a_cluster_without_an_obstacle_says_so() -> None:
    assert (
        as_text(judged([pod(), pod("web-2")])).splitlines()[0]
        == "0 of 2 nodes would not drain; nothing was found"
    )


def test_people_see_the_worst_workloads_and_programs_all() -> None:
    many = [pod(f"p-{number}", app=f"app{number}", spec=PodSpec(empty_dir=True)) for number in range(130)]
    found = judged(many)

    assert len(to_document(found)["workloads"]) == 130
    assert as_text(found).count("  remedy ") == MOST_WORKLOADS
    for form in (as_text, as_markdown):
        assert "and 30 workloads more; --output json has all of them" in form(found)


def test_people_see_a_limited_number_of_reasons_and_programs_all() -> None:
    held = [KeptByPeople(PeopleCode.HOLD, f"held {number}", "Ask.", None, ("a",)) for number in range(130)]
    found = replace(judged([pod()]), people=tuple(held))

    assert len(to_document(found)["people"]) == 130
    for form in (as_text, as_markdown):
        assert form(found).count("Ask.") == MOST_WORKLOADS
        assert "and 30 reasons more; --output json has all of them" in form(found)


def test_the_page_has_the_worst_findings_and_says_how_many_it_leaves_out() -> None:
    many = [pod(f"p-{number}", app=f"app{number}", spec=PodSpec(empty_dir=True)) for number in range(53)]
    part = readiness_part(judged(many))

    assert (part.headline, part.remarks) == (
        "0 of 2 nodes would not drain; of the workloads, 53 would be down or lose pods",
        (),
    )
    assert part.assumption.startswith("2026-11-21T12:00:00Z: 53 pods; each node is judged alone")
    assert (part.rows[0].title, part.rows[0].place) == ("shop/app0 (Deployment)", "1 pod on a")
    assert len(part.rows) == 50
    assert part.rest == "and 3 more findings: reconciler readiness -o json has all of them"
    assert readiness_part(judged(many[:50])).rest == ""


def test_the_names_of_a_finding_are_limited_and_its_numbers_are_whole() -> None:
    names = [f"n-{number:03}" for number in range(MOST_NAMES + 50)]
    nodes = tuple(node(name) for name in names)
    many = [pod(f"web-{name}", name, spec=PodSpec(empty_dir=True)) for name in names]
    finding = to_document(judged(many, nodes=nodes))["workloads"][0]["findings"][0]

    assert (finding["podCount"], finding["podNames"]) == (150, [f"web-{name}" for name in names[:MOST_NAMES]])
    assert (finding["nodeCount"], finding["nodeNames"]) == (150, names[:MOST_NAMES])


@example("![x](https://evil.example/p.png) | <b>")
@given(st.text(st.one_of(st.characters(), st.sampled_from("\\`*_{}[]()#+-.!<>|~&:/@\n\r\t 1w")), max_size=40))
def test_no_text_from_outside_controls_a_terminal_or_becomes_markdown(text: str) -> None:
    found, harmless = answer(f"x{text}"), answer()
    shown, marked = as_text(found), as_markdown(found)

    assert shown.replace("\n", "").isprintable()
    assert len(shown.splitlines()) == len(as_text(harmless).splitlines())
    assert len(marked.splitlines()) == len(as_markdown(harmless).splitlines())
    tokens = MARKDOWN.parse(marked)
    types = {token.type for token in tokens} | {
        each.type for token in tokens for each in token.children or ()
    }
    assert not types & {"link_open", "image", "html_inline", "html_block", "fence", "code_block"}
    document = to_document(found)
    assert json.loads(as_json(document)) == document


def test_every_key_and_every_finding_of_readiness_is_described() -> None:
    pods = ("debug",)
    finding = Finding(
        FindingCode.UNMANAGED, Severity.OUTAGE, "it stays", "Give it a controller.", pods, ("a",)
    )
    workload = WorkloadFindings(Workload("shop", "", ""), (finding,))
    found = Readiness(NOW, "Reboot", 1, 1, (), (workload,))
    document = to_document(found)
    inner = {*document["workloads"][0], *document["workloads"][0]["findings"][0]}
    section = written("output.md").partition("\n## Readiness\n")[2].partition("\n## ")[0]

    assert set(document) - named("output.md") == set()
    assert {key for key in inner if f"`{key}`" not in section} == set()
    rows = re.findall(r"^\| `(\w+)` \| (?:blocks|outage|notice) \|", written("planning.md"), re.MULTILINE)
    assert sorted(rows) == sorted(code.value for code in FindingCode)
