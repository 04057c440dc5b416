"""Text from outside in a report: it controls no terminal, and becomes no Markdown of its own."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reconciler.model.drains import Blocker
from reconciler.model.event import Cause
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import DrainState, Hold, NodeStatus
from reconciler.model.values import replace
from reconciler.report import safe
from reconciler.report.document import Report, as_json, to_report
from reconciler.report.text import as_markdown, as_text
from tests.support import builders

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NASTY = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp"]),
        st.sampled_from("\\`*_{}[]()#+-.!<>|~&:/@\n\r\t 1w"),
    ),
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain: aks-np_1 (3 of 4)", "plain: aks-np_1 (3 of 4)", id="plain text stays"),
        pytest.param("\x1b[2Jgone", "\\x1b[2Jgone", id="ESC"),
        pytest.param("\x9b31mred", "\\x9b31mred", id="C1"),
        pytest.param("ok\r\nFAILED: all", "ok  FAILED: all", id="line breaks"),
        pytest.param("a\u2028b\x85c", "a b c", id="line breaks of Unicode"),
        pytest.param("\u202eevil", "\\u202eevil", id="writing direction"),
        pytest.param("a\u200bb\u00a0c", "a\\u200bb c", id="width"),
        pytest.param("half \ud800", "half \\ud800", id="half of a surrogate pair"),
        pytest.param("Zürich “quoted” →", "Zürich “quoted” →", id="letters of all languages stay"),
    ],
)
def test_a_line_for_a_terminal(text: str, shown: str) -> None:
    assert safe.line(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("![x](https://evil.example/p.png)", "!\\[x\\](https: //evil.example/p.png)", id="image"),
        pytest.param("https://evil.example", "https: //evil.example", id="bare link"),
        pytest.param("www.evil.example", "www. evil.example", id="bare name"),
        pytest.param("cc @everyone", "cc @ everyone", id="mention"),
        pytest.param("<script>", "&lt;script>", id="HTML"),
        pytest.param("# title", "\\# title", id="heading"),
        pytest.param("1. one", "1\\. one", id="numbered list"),
        pytest.param("a_b _c_", "a_b \\_c\\_", id="emphasis"),
        pytest.param("a\n\n```\nb", "a  \\`\\`\\` b", id="code fence"),
    ],
)
def test_a_text_in_markdown(text: str, shown: str) -> None:
    assert safe.markdown(text) == shown


@given(NASTY)
def test_markdown_shows_any_text_as_it_is(text: str) -> None:
    tokens = MARKDOWN.parse(safe.markdown(text))
    inline = [child for token in tokens for child in token.children or ()]

    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
    assert {child.type for child in inline} <= {"text", "text_special"}


@given(NASTY)
def test_no_text_in_a_report_controls_a_terminal_or_adds_a_line(text: str) -> None:
    nasty, harmless = _report(text), _report("harmless")

    for form in (as_text, as_markdown):
        assert form(nasty).replace("\n", "").isprintable()
        assert len(form(nasty).splitlines()) == len(form(harmless).splitlines())


@given(NASTY)
def test_the_json_has_the_text_itself_and_no_control_character(text: str) -> None:
    document = _report(text).document
    shown = as_json(document)

    assert shown.replace("\n", "").isprintable()
    assert json.loads(shown) == document


@given(NASTY)
def test_markdown_of_a_report_has_no_link_image_or_html(text: str) -> None:
    tokens = MARKDOWN.parse(as_markdown(_report(text)))
    types = {token.type for token in tokens} | {
        child.type for token in tokens for child in token.children or ()
    }

    assert not types & {"link_open", "image", "html_inline", "html_block", "fence", "code_block"}
    assert "table_open" in types


def _report(text: str) -> Report:
    """A report with the text wherever text from outside can be."""
    event = builders.signal(description="x")
    plan = builders.planned(builders.snapshot(builders.node("a"), readings={"a": builders.reported(event)}))
    (node,) = plan.nodes
    judged = node.events[0]
    node = replace(
        node,
        zone=f"x{text}",
        pool=f"x{text}",
        events=(
            replace(judged, event=dataclasses.replace(judged.event, cause=Cause(description=f"x{text}"))),
        ),
        status=NodeStatus(unread=(("source", text),)),
        holds=(Hold("a", "windowOpen", text),),
        draining=DrainState(kept=(Blocker(f"shop/{text}", text, text),)),
    )
    failed = Outcome("a", "cordon", Result.FAILED, text)
    return to_report(replace(plan, nodes=(node,), notes=(f"note {text}",)), [failed], rehearsed=True)
