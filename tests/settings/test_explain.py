"""The settings in words, for a person and for a machine."""

from datetime import UTC, datetime

import pytest

from reconciler.settings.explain import explain_settings, parse_at, windows_as_data, windows_as_text
from reconciler.settings.load import parse_settings
from reconciler.settings.reference import json_schema
from reconciler.settings.schema import Settings
from tests.calendar.test_windows import EXAMPLE

FULL = (
    EXAMPLE
    + """
mode: Enforce
nodeSelector: {kubernetes.azure.com/mode: user}
conditions: {KernelDeadlock: {for: 5m, emptyDir: Evict}}
events: {LiveMigration: {drain: true, minDuration: 9s}}
budget: {perZone: 1, perPool: 20%, spacing: 10m}
adopt: [mechanic]
overrides:
- nodeSelector: {agentpool: sessions}
  events: {Reboot: {outsideWindow: Immediately, unmanagedPods: Evict}, userInitiated: Drain}
- nodeSelector: {agentpool: web}
  events: {Freeze: {leadTime: 5m}}
"""
)

WORDS = """\
policy.yaml is valid.

Mode Enforce: cordon, drain and uncordon nodes.
Nodes with kubernetes.azure.com/mode=user are managed, \
except those with the label node-maintenance.dev/ignore=true.
Times are in Europe/Berlin.

Events
  Freeze: reported only, no drain.
  LiveMigration: drained, if it lasts 9s or longer, or its duration is unknown, only inside a window; \
pods with an emptyDir are kept, unmanaged pods kept.
  Reboot: drained, inside a window that opens before the deadline, else at the deadline, \
15m before notBefore; \
pods with an emptyDir are kept, unmanaged pods kept.
  Redeploy: drained, inside a window that opens before the deadline, else at the deadline, \
15m before notBefore; \
pods with an emptyDir are evicted, unmanaged pods kept.
  Preempt: drained, at once, also outside windows; \
pods with an emptyDir are evicted, unmanaged pods evicted.
  Terminate: drained, inside a window that opens before the deadline, else at the deadline, \
15m before notBefore; \
pods with an emptyDir are evicted, unmanaged pods evicted.
  Rebalance: reported only, no drain.
  Unknown: reported, with the text that cannot be read.
  Events that a user of the subscription starts: reported only.
  Condition KernelDeadlock: drained once it has been True for 5m, only inside a window; \
pods with an emptyDir are evicted, unmanaged pods kept.

Different on nodes with agentpool=sessions (overrides[0])
  Reboot: drained, at once, also outside windows; pods with an emptyDir are kept, unmanaged pods evicted.
  Events that a user of the subscription starts: treated like those of the platform.

Different on nodes with agentpool=web (overrides[1])
  nothing

Windows
  weeknights: Mon-Thu 22:00-05:00, on nodes with agentpool=batch.
  first-saturday: 0 2 * * 6#1 for 4h, on nodes with agentpool=batch.
  On nodes without a window: at any time.
  Not allowed: black-friday: 2026-11-26T00:00 to 2026-11-30T06:00, sale; except at a deadline.

Draining
  At most 10 nodes at once, 30m for each.
  Cordons of mechanic are adopted.

Budget
  At most 10% of the nodes out of service at once, for any reason.
  In each zone, at most 1 node.
  In each node pool, at most 20% of the nodes.
  At least 10m between the starts of two drains.
  Nodes with Preempt, Terminate never wait for a place, but count.
  A node whose maintenance the platform has started waits for no place, but counts.
  Nodes NotReady for more than 30m or quarantined hold no place.
"""


def test_check_config_prints_what_happens_for_each_kind_of_event_and_override() -> None:
    assert explain_settings(parse_settings(FULL, "f"), "policy.yaml") == WORDS


def test_an_empty_file_reports_only() -> None:
    words = explain_settings(Settings())

    assert "Mode Observe: report only, change no node" in words
    assert "Reboot: drained, at any time, because there are no windows;" in words
    assert "No windows: drains may start at any time." in words


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        pytest.param(
            "{matchExpressions: [{key: a, operator: NotIn, values: [b]}]}", "Freeze: drained", id="NotIn"
        ),
        pytest.param("{}", "Different on all nodes (overrides[0])", id="every node"),
        pytest.param(
            "{matchExpressions: [{key: a, operator: Exists}, {key: a, operator: DoesNotExist}]}",
            "so there is no single answer",
            id="one that its own first words don't fit",
        ),
    ],
)
def test_overrides_by_expressions_are_printed_too(selector: str, said: str) -> None:
    settings = parse_settings(
        f"overrides: [{{nodeSelector: {selector}, events: {{Freeze: {{drain: true}}}}}}]", "f"
    )

    assert said in explain_settings(settings)


@pytest.mark.parametrize(
    ("passes", "words"),
    [
        ("{every: 5m}", "A pass runs at least every 5m, and after each change."),
        (
            '{cron: "*/10 * * * *"}',
            "A pass runs at the times of the cron schedule */10 * * * *, and after each change.",
        ),
    ],
)
def test_the_times_of_passes_are_explained(passes: str, words: str) -> None:
    assert words in explain_settings(parse_settings(f"passes: {passes}", "f")).splitlines()


def test_windows_for_a_machine() -> None:
    settings = parse_settings(EXAMPLE, "f")
    now = parse_at("2026-11-23T23:00", settings)

    data = windows_as_data(settings, now, {"agentpool": "batch"}, count=1)

    intervals = data.pop("intervals")  # type: ignore[misc]  # they are compared on their own
    assert intervals[0] == {
        "start": "2026-11-23T21:00:00Z",
        "end": "2026-11-24T04:00:00Z",
        "use": "windows",
        "name": "weeknights",
        "nodes": "agentpool=batch",
        "reason": "",
        "absolute": False,
        "summary": "",
    }
    assert intervals[3] == {
        "start": "2026-11-25T23:00:00Z",
        "end": "2026-11-30T05:00:00Z",
        "use": "notAllowed",
        "name": "black-friday",
        "nodes": "",
        "reason": "sale",
        "absolute": False,
        "summary": "",
    }
    # A freeze does not shorten the interval of a window, and the last one starts within the 14 days.
    assert [one["name"] for one in intervals].count("weeknights") == 9
    assert data == {
        "at": "2026-11-23T22:00:00Z",
        "open": True,
        "because": "window weeknights is open until 2026-11-24T04:00:00Z",
        "window": "weeknights",
        "notAllowed": None,
        "absolute": False,
        "changesAt": "2026-11-24T04:00:00Z",
        "openings": [
            {
                "start": "2026-11-23T21:00:00Z",
                "end": "2026-11-24T04:00:00Z",
                "window": "weeknights",
                "nodes": "",
            }
        ],
    }


def test_windows_for_a_person() -> None:
    settings = parse_settings(EXAMPLE, "f")

    assert windows_as_text(settings, parse_at("2026-11-27", settings), {}) == (
        "Fri 2026-11-27 00:00 CET (Europe/Berlin): closed\n"
        "  not allowed: black-friday (sale) until Mon 2026-11-30 06:00 CET (Europe/Berlin)\n"
        "Openings\n"
        "  Mon 2026-11-30 06:00 CET (Europe/Berlin) without an end: any time\n"
    )


def test_no_opening_is_said_in_so_many_words() -> None:
    settings = parse_settings("notAllowed: [{name: a, start: 2020-01-01, end: 2100-01-01}]", "f")

    assert "No opening in the next 400 days" in windows_as_text(
        settings, datetime(2026, 11, 23, tzinfo=UTC), {}
    )


def test_the_json_schema_has_the_files_keys_and_defaults() -> None:
    schema = json_schema()

    assert schema["additionalProperties"] is False
    assert schema["properties"]["timeZone"]["default"] == "UTC"
    assert schema["properties"]["mode"]["default"] == "Observe"
    budget = schema["$defs"]["Budget"]["properties"]
    assert budget["maxUnavailable"]["default"] == "10%"
    assert budget["exempt"]["default"] == ["Preempt", "Terminate"]
    assert schema["$defs"]["Drain"]["properties"]["timeout"]["default"] == "30m"
    assert "LiveMigration" in schema["$defs"]["Events"]["properties"]
    assert "for" in schema["$defs"]["ConditionMeaning"]["properties"]


@pytest.mark.parametrize(
    ("schedule", "duration", "said"),
    [
        ("0 5 * * 6", "2d14h", "Sat 05:00 to Mon 19:00"),
        ("30 22 * * mon-fri", "8h", "Mon-Fri 22:30 to 06:30 of the next day"),
        ("0 2 * * *", "2h", "every day 02:00 to 04:00"),
        ("0 0 * * 7", "1d", "Sun 00:00 to Mon 00:00"),
        ("0 2 * * 6#1", "4h", ""),
        ("0 2 1 * 6", "4h", ""),
        ("*/5 2 * * 6", "4h", ""),
    ],
)
def test_a_cron_schedule_is_explained_by_the_days_of_the_week(
    schedule: str, duration: str, said: str
) -> None:
    text = f"windows: [{{name: w, schedule: '{schedule}', duration: {duration}}}]"
    line = explain_settings(parse_settings(text, "f")).partition("Windows\n")[2].partition("\n")[0]

    assert line == f"  w: {schedule} for {duration}{f' ({said})' if said else ''}."


def test_freezes_without_windows_are_explained_as_such() -> None:
    text = explain_settings(
        parse_settings("notAllowed: [{name: sale, start: 2026-12-01, end: 2027-01-01}]", "f")
    )

    assert (
        "Reboot: drained, at any time but those that are not allowed, and at the deadline then, 15m" in text
    )
    assert "No windows: drains may start at any time, but those that are not allowed." in text
    assert "because there are no windows" not in text
