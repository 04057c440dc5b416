"""A wrong file: every mistake at once, each with file, line, column, key, and what was probably meant."""

from pathlib import Path

import pytest

from reconciler.model.errors import SettingsError
from reconciler.settings.load import load_settings, parse_settings
from tests.settings.tables import rows


def mistakes(text: str) -> tuple[str, ...]:
    """Return what is wrong with the text of a file called f."""
    with pytest.raises(SettingsError) as raised:
        parse_settings(text, "f")
    return raised.value.mistakes


def test_all_mistakes_are_reported_at_once_in_the_files_order() -> None:
    text = """\
mode: enforce
timeZone: Europe/Berlinn
windows:
- name: a
  start: "22:00"
  end: 5
  days: [fridayyyy]
- schedule: "0 2 * * 6#1"
- name: a
budget:
  maxUnavailible: 3
  perZone: 120%
mode: Observe
"""

    assert [line.split(": ")[0] + " " + line.split(": ")[1] for line in mistakes(text)] == [
        "f:1:1 mode",
        "f:2:1 timeZone",
        "f:6:3 windows[0].end",
        "f:7:3 windows[0].days",
        "f:8:3 windows[1].schedule",
        "f:9:3 windows[2].name",
        "f:11:3 budget.maxUnavailible",
        "f:12:3 budget.perZone",
        "f:13:1 mode",
    ]


# A file, and below it its only mistake.
MISTAKES = """\
budget: {maxUnavailible: 3}
| f:1:10: budget.maxUnavailible: unknown key; did you mean maxUnavailable?
overrides: [{events: {Freeze: {minDuraton: 3s}}}]
| f:1:32: overrides[0].events.Freeze.minDuraton: unknown key; did you mean minDuration?
conditions: {KernelDeadlock: {fore: 3m}}
| f:1:31: conditions.KernelDeadlock.fore: unknown key; did you mean for?
uncordon: {zzzzzz: 1}
| f:1:12: uncordon.zzzzzz: unknown key; the keys here are settle
time_zone: UTC
| f:1:1: time_zone: unknown key; did you mean timeZone?
mode: observe
| f:1:1: mode: 'observe' is not one of Observe, Enforce, Finish; did you mean Observe?
events: {Freeze: {drain: no}}
| f:1:19: events.Freeze.drain: 'no' is neither true nor false; did you mean false?
events: {Freeze: {leadTime: 10}}
| f:1:19: events.Freeze.leadTime: 10 has no unit; write 10s, 10m or 10h
events: {Freeze: {leadTime: -10m}}
| f:1:19: events.Freeze.leadTime: -10m is negative; a duration is 0s or longer
apiVersion: node-maintenance.dev/v2
| f:1:1: apiVersion: 'node-maintenance.dev/v2' is not one of node-maintenance.dev/v1alpha1; did you mean
| node-maintenance.dev/v1alpha1?
windows: {days: [sat]}
| f:1:1: windows: a mapping is not a list; write `- ` before its first key, and indent the other keys
timeZone: CEST
| f:1:1: timeZone: 'CEST' is not an IANA time zone; did you mean Europe/Berlin or Europe/Budapest or
| Europe/Paris or Europe/Warsaw?
timeZone: PST
| f:1:1: timeZone: 'PST' is not an IANA time zone; did you mean America/Los_Angeles or America/Vancouver?
timeZone: W. Europe Standard Time
| f:1:1: timeZone: 'W. Europe Standard Time' is not an IANA time zone; did you mean Europe/Berlin?
timeZone: W. Europe
| f:1:1: timeZone: 'W. Europe' is not an IANA time zone; did you mean Europe/Berlin?
timeZone: UTC+1
| f:1:1: timeZone: 'UTC+1' is not an IANA time zone; write the zone of a city, like Europe/Berlin, or
| Etc/GMT-1, whose clocks never change
timeZone: CST
| f:1:1: timeZone: 'CST' is not an IANA time zone; did you mean America/Chicago or Asia/Shanghai or
| America/Guatemala or America/Havana?
timeZone: New York
| f:1:1: timeZone: 'New York' is not an IANA time zone; did you mean America/New_York?
timeZone: XYZ
| f:1:1: timeZone: 'XYZ' is not an IANA time zone; write the zone of a city, like Europe/Berlin
adopt: mechanic
| f:1:1: adopt: 'mechanic' is not a list; write it like ['mechanic']
uncordon: 2m
| f:1:1: uncordon: '2m' is not a mapping of keys to values
- a
| f:1:1: a list is not a mapping of keys to values
mode:
| f:1:1: mode: nothing is not one of Observe, Enforce, Finish
drain: {rules: [{order: 1}]}
| f:1:17: drain.rules[0].name: is missing
windows: [{name: 2026}]
| f:1:12: windows[0].name: 2026 is not text; write it in quotes
nodeSelector: {gpu: true}
| f:1:16: nodeSelector.gpu: a label value is text; write it in quotes: "true"
nodeSelector: {version: 1.10}
| f:1:16: nodeSelector.version: a label value is text; write it in quotes: "1.10"
conditions: {Ready: {for: 5m}}
| f:1:14: conditions.Ready: Ready can't be named: Kubernetes itself evicts the pods of a node that is not
| Ready, and Ready is True on healthy nodes
conditions: {VMEventScheduled: {}}
| f:1:14: conditions.VMEventScheduled: sources.nodeConditions reads VMEventScheduled as an event; write what
| to do in `events`, by its kind
keys: {prefix: My_Prefix}
| f:1:8: keys.prefix: 'My_Prefix' is not a DNS name in lower case, like node-maintenance.dev
drain: {maxConcurrentNodes: 0}
| f:1:9: drain.maxConcurrentNodes: 0 is not a whole number of at least 1
"""


@pytest.mark.parametrize("key", ["overrides", "windows", "notAllowed"])
def test_a_list_has_a_limit(key: str) -> None:
    entry = "{nodeSelector: {a: b}}" if key == "overrides" else "{start: '10:00', end: '11:00'}"
    parse_settings(f"{key}: [{', '.join([entry] * 1000)}]", "f")
    assert mistakes(f"{key}: [{', '.join([entry] * 1001)}]") == (
        f"f:1:1: {key}: has 1001 entries; the limit is 1000",
    )


@pytest.mark.parametrize(("text", "line"), rows(MISTAKES))
def test_a_mistake_says_where_what_and_what_instead(text: str, line: str) -> None:
    assert mistakes(text) == (line,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{start: "00:00", end: "00:00"}', "end: 00:00 is also the start"),
        ('{start: "24:00"}', "start: 24:00 can only be an end"),
        ("{days: []}", "days: has no days"),
        ('{schedule: "@daily"}', "schedule: needs a duration"),
        ("{duration: 4h}", "duration: needs a schedule"),
        ('{schedule: "@daily", duration: 0s}', "duration: is 0"),
        ('{schedule: "@daily", duration: 1h, days: [mon]}', "days: can't be combined with a schedule"),
        ('{schedule: "0 0 30 2 *", duration: 1h}', "schedule: "),
        ('{schedule: "0 2 * * 8", duration: 1h}', "bad day-of-week"),
        ('{schedule: "0 2 * * sat-sun", duration: 1h}', "write sat,sun instead of sat-sun"),
        ('{schedule: "0 2 * * fri-1,3", duration: 1h}', "write fri,sat,sun,mon instead of fri-1"),
        ('{schedule: "0 0 2 * * 6", duration: 1h}', "five fields"),
        ('{schedule: "@reboot", duration: 1h}', "not a cron macro"),
        ("{schedule: 5, duration: 1h}", "schedule: 5 is not text"),
        ("{start: 2026-11-26}", "start: is a moment, so end must be"),
        ('{start: 2026-11-26, end: "06:00"}', "end: has no date"),
        ("{start: 2026-11-26, end: 2026-11-26}", "an end date excludes that day"),
        ("{start: 2026-11-27, end: 2026-11-26}", "is not after its start"),
        (
            "{start: 2026-11-26T01:00+01:00, end: 2026-11-26, timeZone: Europe/Berlin}",
            "end: 2026-11-26 is not after its start",
        ),
        ("{days: [mon], start: 2026-11-26, end: 2026-11-27}", "days: can't be combined with a date"),
        ("{timeZone: Mars/Olympus}", "timeZone: 'Mars/Olympus' is not an IANA"),
    ],
)
def test_a_window_that_cannot_be_meant_is_refused(text: str, said: str) -> None:
    (line,) = mistakes(f"windows: [{text}]")

    assert said in line
    assert line.startswith("f:1:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{every: 1m, cron: "@hourly"}', "cron: can't be combined with every; write one of the two"),
        ("{every: 0s}", "every: is 0; write a longer time, like 1m"),
        ('{cron: "61 * * * *"}', "cron: '61 * * * *' is not a cron schedule: bad minute"),
    ],
)
def test_passes_come_at_one_sort_of_times(text: str, said: str) -> None:
    (line,) = mistakes(f"passes: {text}")

    assert line.startswith("f:1:")
    assert line.endswith(f"passes.{said}")


def test_a_freeze_has_to_say_when() -> None:
    assert mistakes("notAllowed: [{name: x}]") == (
        "f:1:14: notAllowed[0]: has no times; write start and end, or days, or a schedule and a duration",
    )


def test_windows_without_a_name_may_look_the_same() -> None:
    settings = parse_settings(
        "windows: [{days: [mon], nodeSelector: {a: b}}, {days: [mon], nodeSelector: {a: c}}]", "f"
    )

    assert [window.name for window in settings.calendar.windows] == ["Mon 00:00-24:00"] * 2


def test_a_second_document_is_refused_with_what_to_do() -> None:
    (line,) = mistakes("mode: Observe\n---\nmode: Enforce\n")

    assert line.startswith("f:2:1: a second document starts here")
    assert "keep the one that you" in line


def test_a_file_is_read_and_its_path_reported(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"\xef\xbb\xbfmode: Finish\r\n")
    assert load_settings(path).mode == "Finish"

    path.write_text("moode: Finish", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"policy\.yaml:1:1: moode: unknown key; did you mean mode\?"):
        load_settings(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, r"policy\.yaml: can't be read: No such file", id="there is no file"),
        pytest.param(b"mode: Observe\nx: \xff", "2:4: is not UTF-8", id="not text"),
        pytest.param("mode: Finish".encode("utf-16"), "1:1: is not UTF-8", id="text of another kind"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_mistake_too(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "policy.yaml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(SettingsError, match=said):
        load_settings(path)


def test_a_tab_is_said_to_be_one() -> None:
    assert mistakes("windows:\n\t- {days: [sat]}\n") == (
        "f:2:1: not YAML: this line has a tab before its text; YAML is indented with spaces only",
    )


def test_the_manifest_of_a_config_map_is_said_to_be_one() -> None:
    manifest = """apiVersion: v1
kind: ConfigMap
metadata: {name: maintenance-policy, namespace: node-maintenance}
data:
  maintenance.yaml: |
    mode: Enforce
"""
    (said,) = mistakes(manifest)

    assert said.startswith("f:2:1: kind: this is the manifest of a ConfigMap")
    assert "the text in it (maintenance.yaml)" in said
    assert "name configmap/node-maintenance/maintenance-policy instead of the file" in said


def test_all_mistakes_are_said_also_those_that_need_several_keys() -> None:
    text = "mode: Enfroce\nnotAllowed: [{start: 2026-12-02T00:00Z, end: 2026-12-01}]\n"
    found = "\n".join(mistakes(text))

    assert "mode: 'Enfroce'" in found
    assert "notAllowed[0].end: 2026-12-01 is not after its start" in found
