"""Label selectors: both forms, the API server's meaning, and every mistake at once."""

import pytest

from reconciler.model.selector import EVERYTHING
from reconciler.settings.fields import parse_selector
from reconciler.settings.mistakes import Mistakes

POOL = {"agentpool": "batch"}


def _expression(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        pytest.param({}, {}, True, id="an empty one selects all"),
        pytest.param(POOL, POOL, True, id="an equal label"),
        pytest.param(POOL, {"agentpool": "web"}, False, id="another value"),
        pytest.param(POOL, {}, False, id="no such label"),
        pytest.param({"a": "1", "b": "2"}, {"a": "1"}, False, id="every label counts"),
        pytest.param({"a": ""}, {"a": ""}, True, id="an empty value is a value"),
        pytest.param({"a": ""}, {}, False, id="and not a missing label"),
        pytest.param({"matchLabels": POOL}, POOL, True, id="matchLabels"),
        pytest.param(_expression("a", "In", "1", "2"), {"a": "2"}, True, id="In"),
        pytest.param(_expression("a", "In", "1", "2"), {}, False, id="In, no such label"),
        pytest.param(_expression("a", "NotIn", "1"), {"a": "1"}, False, id="NotIn"),
        pytest.param(_expression("a", "NotIn", "1"), {}, True, id="NotIn is met by a missing label"),
        pytest.param(_expression("a", "Exists"), {"a": ""}, True, id="Exists"),
        pytest.param(_expression("a", "DoesNotExist"), {"a": ""}, False, id="DoesNotExist"),
        pytest.param({"matchLabels": POOL, **_expression("a", "Exists")}, POOL, False, id="both parts count"),
        pytest.param(
            {"matchLabels": "x"}, {"matchLabels": "x"}, True, id="a label may be called matchLabels"
        ),
        pytest.param({"matchLabels": None}, {}, True, id="an empty part asks nothing"),
    ],
)
def test_a_selector_selects_as_the_api_server_does(
    selector: object, labels: dict[str, str], selected: bool
) -> None:
    assert parse_selector(selector).matches(labels) is selected


@pytest.mark.parametrize(
    ("selector", "paths"),
    [
        ({"gpu": True}, [("gpu",)]),
        ({"a b": "x", "c": "y z"}, [("a b",), ("c",)]),
        ({"a": None}, [("a",)]),
        (_expression("a", "in", "x"), [("matchExpressions", 0, "operator")]),
        (_expression("a", "In"), [("matchExpressions", 0, "operator")]),
        (_expression("a", "Exists", "x"), [("matchExpressions", 0, "values")]),
        (
            {"matchExpressions": [{"kee": "a"}]},
            [("matchExpressions", 0, key) for key in ("kee", "key", "operator")],
        ),
        ({"matchExpressions": ["x"]}, [("matchExpressions", 0)]),
        ({"matchExpressions": {}, "matchLabels": []}, [("matchLabels",), ("matchExpressions",)]),
    ],
)
def test_mistakes_have_their_places(selector: object, paths: list[tuple[str | int, ...]]) -> None:
    with pytest.raises(Mistakes) as raised:
        parse_selector(selector)

    assert [mistake.path for mistake in raised.value.mistakes] == paths


def test_it_is_written_as_kubectl_reads_it() -> None:
    selector = parse_selector(
        {
            "matchLabels": {"a": "1"},
            "matchExpressions": [
                {"key": "b", "operator": "In", "values": ["1", "2"]},
                {"key": "c", "operator": "NotIn", "values": ["3"]},
                {"key": "d", "operator": "Exists"},
                {"key": "e", "operator": "DoesNotExist"},
            ],
        }
    )

    assert str(selector) == "a=1,b in (1,2),c notin (3),d,!e"
    assert str(EVERYTHING) == ""
