"""The part of Go's text/template that messages of workflows use, and what is said about the rest."""

from __future__ import annotations

import pytest

from reconciler.features.workflows.go_templates import (
    KNOWN,
    About,
    TemplateRefused,
    indexed,
    message_fields,
    mistake_in,
    printed_whole,
    rendered,
)
from reconciler.model import limits
from reconciler.model.limits import without_markup
from reconciler.model.messages import LONGEST
from tests.support import builders

NODE = builders.node("a", labels={"version": "1.2", "pool": "<x>"}, annotations={"example.com/new": "1.3"})
FIELDS = message_fields(
    NODE, About("os", "maintenance-required", limits.EARLIEST, last="kubelet", in_maintenance=True)
)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain { text }", "plain { text }"),
        ("The node {{ .Node.Name }} is {{.State}}", "The node a is maintenance-required"),
        ("{{ .Node }} {{ .Node.ObjectMeta.Name }} {{ .Node.UID }}", "a a uid-a"),
        ("{{ .Profile }} {{ .Profile.Current }} {{ .Profile.Last }}", "os os kubelet"),
        ('{{ index .Node.Labels "version" }}{{ index .Node.Labels "none" }}', "1.2"),
        ('{{ index .Node.Annotations "example.com/new" }}', "1.3"),
        ("{{ .Node.Labels.version }} {{ .Node.Labels.none }}", "1.2 <no value>"),
        ('{{ .State | printf "%s is %s" .Node.Name }}', "a is maintenance-required"),
        ('{{ printf "%s of %q, %d%%" .State .Node.Name 3 }}', 'maintenance-required of "a", 3%'),
        ("{{ .Node.Name | len }} {{ print .State 1 2 true }}", "1 maintenance-required1 2 true"),
        ('{{ if eq .State "maintenance-required" "x" }}yes{{ else }}no{{ end }}', "yes"),
        ('{{ if eq .State "x" }}1{{ else if .InMaintenance }}2{{ else }}3{{ end }}', "2"),
        ('{{ if and .InMaintenance (not .LogDetails) }}1{{ end }}{{ if or "" .LogDetails }}2{{ end }}', "1"),
        ('{{ if ne .State "x" }}{{ if .LogDetails }}1{{ end }}2{{ end }}', "2"),
        ("a  {{- /* a }} comment */ -}}  b {{- .Node.Name }} c", "aba c"),
        ('{{ `}}` }}{{ "\\"}}\\n" }}', '}}"}}\n'),
        ("{{ .Node.Spec.Unschedulable }} {{ .LastTransition }}", "false 2000-01-01T00:00:00Z"),
        ('{{ println .State "x" }}', "maintenance-required x\n"),
        ("{{ .Node.Labels }}", "map[pool:<x> version:1.2]"),
    ],
)
def test_a_template_makes_what_go_makes(template: str, text: str) -> None:
    assert mistake_in(template, KNOWN) == ""
    assert rendered(template, FIELDS) == text


@pytest.mark.parametrize(
    ("template", "mistake"),
    [
        ("{{ .Nodes }}", "there is no field '.Nodes'; there are .State, .Profile, .Node,"),
        ("{{ .State.Name }}", "'.State.Name': a text has no fields"),
        ("{{ .Node.Status.Phase }}", "there is no field '.Node.Status.Phase'"),
        ("{{ range .Node.Labels }}{{ end }}", "loops, variables and other templates do not exist here"),
        ("{{ $x := 1 }}", "loops, variables and other templates do not exist here"),
        ("{{ upper .State }}", "there is no function 'upper'; there are and, eq, index,"),
        ("{{ .State", "a `{{` has no `}}`"),
        ("{{ /* .State }}", "a `{{` has no `}}`"),
        ("{{ if .State }}", "an `if` has no `end`"),
        ("{{ end }}", "`end` without `if`"),
        ("{{ if .State }}{{ else }}{{ else }}{{ end }}", "an `if` has a second `else`"),
        ("{{ if .State }}{{ else x }}{{ end }}", "after `else` comes nothing or `if`"),
        ("{{ }}", "a value is missing"),
        ("{{ .State | }}", "a value is missing"),
        ("{{ (.State }}", "a `)` is missing"),
        ("{{ .State) }}", "there is a `)` too many"),
        ("{{ print len .State }}", "the function 'len' needs brackets around it here"),
        ("{{ .State .Node }}", "a value can't be called like a function"),
        ("{{ len }}", "len has 0 arguments"),
        ("{{ .State & }}", "can't be read from '&' on"),
        ("{{ " + "(" * 300 + " }}", "it is nested deeper than 20 levels"),
        ("{{ if true }}" * 70, "it is nested deeper than 20 levels"),
    ],
)
def test_what_can_not_be_rendered_is_named_before_it_is_sent(template: str, mistake: str) -> None:
    assert mistake in mistake_in(template, KNOWN)


@pytest.mark.parametrize(
    ("template", "mistake"),
    [
        ("{{ index .State 1 }}", "index needs a mapping"),
        ('{{ printf "%x" .State }}', "printf has no '%x'"),
        ('{{ printf "%s" }}', "printf has too few arguments"),
        ('{{ printf "%s" .State .State }}', "printf has too many arguments"),
        ("{{ len true }}", "len needs a text or a mapping"),
    ],
)
def test_a_value_that_does_not_fit_makes_no_text(template: str, mistake: str) -> None:
    with pytest.raises(TemplateRefused, match=mistake):
        rendered(template, FIELDS)


def test_only_values_are_escaped() -> None:
    text = rendered("<!here> {{ .Node.Labels.pool }}", FIELDS, without_markup)

    assert text == "<!here> &lt;x&gt;"


def test_what_a_template_makes_has_a_limit() -> None:
    node = builders.node("a", annotations={"x": "y" * limits.ANNOTATION})
    text = rendered("{{ .Node.Annotations.x }}" * 40, message_fields(node, About("p", "s", limits.EARLIEST)))

    assert len(text) == LONGEST


def test_the_keys_that_a_template_reads_of_a_node_are_known() -> None:
    template = '{{ if index .Node.Labels "a/b" }}{{ .Node.Labels.c }}{{ .Node.Annotations.d }}{{ end }}'

    assert indexed(template, "Node", "Labels") == {"a/b", "c"}
    assert indexed("{{ .Node.Labels.x }}{{", "Node", "Labels") == frozenset()


@pytest.mark.parametrize(
    ("template", "whole"),
    [
        ("{{ .Node.Labels }}", (".Node.Labels",)),
        ('{{ printf "%v" .Node.ObjectMeta.Labels }}', (".Node.ObjectMeta.Labels",)),
        (
            "{{ if .Node.Annotations }}{{ .Node.Labels | len }}{{ end }}",
            (".Node.Annotations", ".Node.Labels"),
        ),
        ('{{ index .Node.Labels "a" }}{{ .Node.Labels }}', (".Node.Labels",)),
        ('{{ index .Node.Labels "a" }}{{ .Node.Labels.b }}{{ .Node.Name }}', ()),
        ("{{ range .Node.Labels }}{{ end }}", ()),
    ],
)
def test_a_mapping_of_which_only_some_keys_are_known_is_named_where_it_is_used_as_a_whole(
    template: str, whole: tuple[str, ...]
) -> None:
    assert printed_whole(template, KNOWN) == whole
