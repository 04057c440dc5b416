"""Workflows in the settings: files of maintenance-controller load, and each mistake has its place."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import indent

import pytest
from click.testing import CliRunner

from jobs.cli import commands
from reconciler.features.workflows.settings import PROFILES
from reconciler.model.errors import SettingsError
from reconciler.model.record import State
from reconciler.settings.coverage import coverage_of, losses
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Mode, Settings
from reconciler.settings.warnings import warnings

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

THEIRS = """\
intervals:
  requeue: 200ms
  notify: 500ms
instances:
  notify: null
  check:
  - type: hasLabel
    name: transition
    config: {key: transition, value: true}
  trigger:
  - type: alterLabel
    name: alter-it
    config: {key: alter, value: "true", remove: false, colour: red}
profiles:
- name: test
  operational:
    transitions:
    - check: transition && !(transition)
      trigger: alter-it && alter-it
      next: maintenance-required
  maintenance-required:
    notify: null
    transitions: null
dashboard:
  labelFilter: [zone]
"""

OLDER = """\
intervals: {requeue: 10s}
instances:
  check:
  - hasAnnotation:
      name: needed
      config: {key: example.com/needed, value: "true"}
  trigger: null
profiles:
  linux:
    operational: {check: needed}
    maintenance-required: {check: "!needed", trigger: null}
"""


def mistakes(text: str, **environment: str) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        parse_settings(text, "their.yaml", environment)
    return list(raised.value.mistakes)


def test_a_file_of_maintenance_controller_acts_and_brings_only_its_workflows() -> None:
    found = parse_settings(THEIRS, "their.yaml")

    assert found.origin.foreign
    assert (found.mode, found.keys.prefix) == (Mode.ENFORCE, "cloud.sap")
    assert not any(getattr(found.sources, name).enabled for name in type(found.sources).model_fields)
    assert PROFILES.of(found).intervals.requeue == timedelta(milliseconds=200)
    (profile,) = PROFILES.of(found).profiles
    (step,) = profile.operational.transitions
    assert (step.trigger, step.next) == (("alter-it", "alter-it"), State.REQUIRED)
    assert PROFILES.of(found).instances.check[0].settings.value == "true"


def test_check_config_warns_of_each_key_that_is_ignored() -> None:
    found = [(one.key, one.change) for one in warnings(parse_settings(THEIRS, "their.yaml"), NOW)]

    assert found == [
        ("dashboard", "remove it if you do not go back"),
        ("intervals.notify", "remove it"),
        ("instances.trigger[0].config.colour", "remove it, or correct its name"),
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            ("value: true}", "vlaue: true}"),
            "instances.check[0].config.vlaue: unknown key; did you mean value?",
        ),
        (
            ("    - check: transition", "    - chekc: transition"),
            "profiles[0].operational.transitions[0].chekc: unknown key; did you mean check?",
        ),
        (
            ("remove: false, colour: red", "remvoe: true"),
            "instances.trigger[0].config.remvoe: unknown key; did you mean remove?",
        ),
        (("    config: {key: alter,", "    confg: {key: alter,"), "instances.trigger[0].confg: unknown key"),
        (("  maintenance-required:", "  maintenance-requried:"), "profiles[0].maintenance-requried: unknown"),
    ],
)
def test_a_misspelt_key_that_would_be_a_limit_is_refused(wrong: tuple[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        parse_settings(THEIRS.replace(*wrong), "their.yaml")


LIMITS = """\
instances:
  trigger:
  - {type: drain, name: d, config: {deletionTimeout: 1m, evictionTimeout: 5m}}
  notify:
  - type: slack
    name: s
    config: {hook: "https://hooks.example.com", channel: c, message: m}
    schedule: {type: scheduled, config: {instant: "10:00", weekdays: [mon]}}
profiles: []
"""


@pytest.mark.parametrize(
    ("known", "unknown", "message"),
    [
        (
            "evictionTimeout",
            "evictonTimeout",
            "trigger[0].config.evictonTimeout: unknown key; did you mean evict",
        ),
        (
            "evictionTimeout",
            "patience",
            "trigger[0].config.patience: unknown key; the keys here are evictionTi",
        ),
        ("    schedule:", "    shedule:", "notify[0].shedule: unknown key; did you mean schedule?"),
        ("weekdays", "days", "notify[0].schedule.config.days: unknown key"),
        (
            "weekdays: [mon]",
            "weekdays: [mon], until: 12",
            "notify[0].schedule.config.until: unknown key; the keys",
        ),
        ("channel", "chanel", "notify[0].config.chanel: unknown key; did you mean channel?"),
    ],
)
def test_an_unknown_key_of_a_trigger_or_notification_that_could_limit_something_is_refused(
    known: str, unknown: str, message: str
) -> None:
    assert [one.key for one in warnings(parse_settings(LIMITS, "their.yaml"), NOW)] == [
        "instances.trigger[0].config.deletionTimeout"
    ]
    assert any(f"instances.{message}" in line for line in mistakes(LIMITS.replace(known, unknown)))


OF_YAML_1_1 = """\
intervals: &often {requeue: 1m}
instances:
  check:
  - &marked {type: hasLabel, name: marked, config: {key: marked, value: yes}}
  - <<: *marked
    name: eighth
    config: {key: number, value: 010}
  - {type: maxMaintenance, name: two, config: {max: 2.0}}
  trigger:
  - {type: alterLabel, name: version, config: {key: version, value: 1.10}}
  - {type: alterLabel, name: empty, config: {key: empty, value: }}
  - {type: alterAnnotation, name: nothing, config: {key: empty, value: }}
profiles: []
"""


def test_a_file_of_maintenance_controller_is_read_as_yaml_1_1() -> None:
    found = parse_settings(OF_YAML_1_1, "their.yaml")

    given = PROFILES.of(found).instances
    assert [one.settings.value for one in given.check[:2]] == ["true", "8"]
    assert [one.name for one in given.check] == ["marked", "eighth", "two"]
    assert given.check[2].settings.max == 2
    assert [one.settings.value for one in given.trigger] == ["1.1", "", ""]


CHANGED = """\
intervals: {requeue: 1.50}
instances:
  check:
  - hasLabel: {name: older, config: {key: version, value: 1.10}}
  - {type: hasLabel, name: quoted, config: {key: version, value: "1.10"}}
  - {type: condition, name: status, config: {type: KernelReady, status: True}}
  - {type: maxMaintenance, name: two, config: {max: 0x2}}
  trigger:
  - {type: alterLabel, name: gone, config: {key: version, remove: True}}
  - {type: alterLabel, name: version, config: {key: version, value: 0x10}}
  notify:
  - {type: slack, name: said, config: {hook: 0x12, channel: c, message: m}}
profiles: []
"""


@pytest.mark.parametrize("below", ["", "profiles:\n"], ids=["their file", "a section of ours"])
def test_check_config_warns_of_each_text_that_yaml_changes_with_its_line_as_written(
    tmp_path: Path, below: str
) -> None:
    file, more = tmp_path / "their.yaml", len(below.splitlines())
    file.write_text(below + indent(CHANGED, "  " if below else ""))

    done = CliRunner().invoke(commands, ["check-config", str(file)])

    quoted = [line for line in done.stderr.splitlines() if "in quotes" in line]
    texts = {
        4: "check[0].hasLabel.config.value: is 1.1, which YAML makes of 1.10 on line 4",
        10: "trigger[1].config.value: is 16, which YAML makes of 0x10 on line 10",
        12: "notify[0].config.hook: is another text than that on line 12, "
        "which YAML reads as a number or a boolean",
    }
    outer = f"{below.strip().replace(':', '.')}instances."
    assert [line.removeprefix(f"warning: {file}:").partition("; ")[0] for line in quoted] == [
        f"{line + more}: {outer}{text.replace(f'line {line}', f'line {line + more}')}"
        for line, text in texts.items()
    ]
    assert done.exit_code == 0


def test_a_text_that_yaml_changes_is_named_with_its_line_also_where_an_alias_or_a_merge_key_repeats_it() -> (
    None
):
    changed = parse_settings(OF_YAML_1_1, "their.yaml").origin.changed

    assert [(one.place[0], one.written, one.read) for one in changed] == [
        (4, "yes", "true"),
        (7, "010", "8"),
        (10, "1.10", "1.1"),
    ]


def test_check_config_warns_where_our_own_file_means_something_else() -> None:
    ours = (
        "profiles:\n  instances:\n    check:\n"
        "    - {type: hasLabel, name: a, config: {key: marked, value: yes}}\n"
        "    - {type: hasLabel, name: b, config: {key: number, value: 010}}\n"
        "    - {type: hasLabel, name: c, config: {key: number, value: '010'}}\n"
        "    notify:\n"
        "    - type: slackThread\n"
        "      name: d\n"
        "      config: {token: 0123, channel: c, title: t, message: m, leaseName: l, leaseNamespace: default,"
        " period: 1h}\n"
    )

    found = [one for one in warnings(parse_settings(ours, "ours.yaml"), NOW) if "YAML 1.1" in one.message]

    config = (
        "profiles.instances.{}.config.{} is {} here, and {} in maintenance-controller, which reads YAML 1.1"
    )
    assert [f"{one.key} {one.message}" for one in found] == [
        config.format("check[0]", "value", "yes", "true"),
        config.format("check[1]", "value", "10", "8"),
        config.format("notify[0]", "token", "one thing", "another"),
    ]


def test_the_end_of_a_line_at_the_end_of_a_variable_does_not_count() -> None:
    text = THEIRS.replace('value: "true"', "value: ${VALUE}")

    found = parse_settings(text, "their.yaml", {"VALUE": "updated\r\n"})

    assert PROFILES.of(found).instances.trigger[0].settings.value == "updated"


def test_check_config_warns_of_a_file_of_another_controller() -> None:
    found = warnings(parse_settings("intervals: {check: 5m}\nothers: {}\n", "their.yaml"), NOW)

    assert [one.key for one in found] == ["profiles", "others", "intervals.check"]
    assert "--enable-esx-maintenance" in found[0].message


def test_the_older_form_has_the_next_states_that_it_implies() -> None:
    (profile,) = PROFILES.of(parse_settings(OLDER, "older.yaml")).profiles

    assert profile.name == "linux"
    assert [(step.check, step.next) for step in profile.operational.transitions] == [
        ("needed", State.REQUIRED)
    ]
    assert [(step.check, step.next) for step in profile.required.transitions] == [
        ("!needed", State.IN_MAINTENANCE)
    ]


def test_the_same_workflows_stand_beside_the_rest_of_our_settings() -> None:
    below = "".join(f"  {line}\n" for line in THEIRS.splitlines())
    found = parse_settings(f"mode: Observe\nprofiles:\n{below}", "ours.yaml")

    assert not found.origin.foreign
    assert (found.mode, found.keys, found.sources) == (
        Mode.OBSERVE,
        Settings().keys,
        parse_settings("", "").sources,
    )
    assert PROFILES.of(found) == PROFILES.of(parse_settings(THEIRS, "their.yaml"))


def test_all_mistakes_are_reported_at_once_with_their_places_in_a_foreign_file() -> None:
    text = """\
instances:
  check:
  - type: hasLable
    name: first
  - type: wait
    name: second
    config: {duration: 5 apples}
  - {type: nodeCount, name: third}
  trigger:
  - {type: alterLabel, name: alter, config: {key: "no key", value: "x y"}}
profiles:
- name: a--b
  in-maintenance:
    enter: " && alter"
    transitions:
    - {check: first, next: nowhere}
"""
    known = "operational, maintenance-required, in-maintenance"
    found = [line for line in mistakes(text) if "hasLable" not in line]

    assert found == [
        (
            "their.yaml:7:14: instances.check[1].config.duration: '5 apples' is not a duration; "
            "write it like 200ms, 30s, 10m, 4h or 1h30m"
        ),
        "their.yaml:8:5: instances.check[2].config.count: is missing",
        (
            "their.yaml:10:46: instances.trigger[0].config.key: 'no key' is not a key of Kubernetes, like "
            "example.com/name"
        ),
        "their.yaml:10:61: instances.trigger[0].config.value: 'x y' is not a value that a label can have",
        (
            "their.yaml:12:3: profiles[0].name: 'a--b' is not a name that the label of a node can have, "
            "without `--`"
        ),
        "their.yaml:14:5: profiles[0].in-maintenance.enter: ' && alter': a name is missing beside &&",
        f"their.yaml:16:22: profiles[0].in-maintenance.transitions[0].next: 'nowhere' is not one of {known}",
    ]
    assert (
        "instances.check[0].type: there is no type 'hasLable' here; did you mean hasLabel?"
        in mistakes(text)[0]
    )


def test_names_that_no_instance_has_are_mistakes() -> None:
    text = """\
instances:
  check: [{type: window, name: one}, {type: window, name: one}]
profiles:
- name: p
  operational:
    enter: gone
    transitions: [{check: one && tow, trigger: away, next: maintenance-required}]
    notify: nobody
- name: q
  operational: {transitions: [{check: "one &&", next: maintenance-required}]}
- name: p
"""
    assert [line.partition(": ")[2] for line in mistakes(text)] == [
        "instances.check[1].name: 'one' is also the name of entry 1; names are unique",
        "profiles[0].operational.enter: instances.trigger has no 'gone'",
        "profiles[0].operational.transitions[0].check: instances.check has no 'tow'",
        "profiles[0].operational.transitions[0].trigger: instances.trigger has no 'away'",
        "profiles[0].operational.notify: instances.notify has no 'nobody'",
        "profiles[1].operational.transitions[0].check: 'one &&': it ends where a check was expected",
        "profiles[2].name: 'p' is also the name of entry 1; names are unique",
    ]


def test_variables_come_from_the_environment() -> None:
    text = """\
instances:
  check:
  - {type: nodeCount, name: many, config: {count: "${COUNT}"}}
  - {type: hasLabel, name: zone, config: {key: "${PREFIX:example.com}/zone-${ZONE}"}}
profiles: []
"""
    found = PROFILES.of(parse_settings(text, "their.yaml", {"COUNT": "3", "ZONE": "7"})).instances.check

    assert found[0].settings.count == 3
    assert found[1].settings.key == "example.com/zone-7"
    assert mistakes(text, COUNT="3") == [
        (
            "their.yaml:4:43: instances.check[1].config.key: the environment variable ZONE is not set; "
            "set it, or write ${ZONE:default}"
        )
    ]
    assert parse_settings(text.replace("${ZONE}", "${ZONE:default}"), "their.yaml", {"COUNT": "3"})


def test_a_variable_is_text_of_a_value_and_no_yaml() -> None:
    text = 'instances: {check: [{type: hasLabel, name: x, config: {key: a, value: "v${V}"}}]}'
    found = parse_settings(text, "their.yaml", {"V": "}]}\nmode: Observe"})

    assert PROFILES.of(found).instances.check[0].settings.value == "v}]}\nmode: Observe"


def test_an_interval_of_zero_is_a_mistake() -> None:
    assert mistakes("intervals: {requeue: 0s}") == [
        "their.yaml:1:13: intervals.requeue: is 0; write a longer time, like 1m"
    ]


def test_check_config_names_the_workflows_of_a_foreign_file() -> None:
    said = explain_settings(parse_settings(THEIRS, "their.yaml"))

    assert (
        "The label cloud.sap/maintenance-profile of a node selects some of these, joined by --: test." in said
    )
    assert "reconciler serve examines the nodes every 0.2s at least." in said
    assert "Windows" not in said


def test_check_config_warns_of_templates_that_can_not_be_rendered() -> None:
    lease = "leaseName: l, leaseNamespace: default, period: 1h"
    config = f"{{token: t, channel: c, title: '{{{{ range . }}}}', message: m, {lease}}}"
    slack = "{hook: 'https://x', channel: c, message: '{{ .Nodes }}'}"
    text = (
        f"instances: {{notify: [{{type: slackThread, name: a, config: {config}}}, "
        f"{{type: slack, name: b, config: {slack}}}]}}"
    )
    found = warnings(parse_settings(text, "their.yaml"), NOW)

    assert [one.key for one in found] == [
        "instances.notify[0].config.title",
        "instances.notify[1].config.message",
    ]
    assert "with the lines that can be: there is no field '.Nodes'" in found[1].message


def test_check_config_warns_of_a_check_that_can_never_answer() -> None:
    instance = "{type: prometheusInstant, name: fail, config: {url: bananabread, query: up, expr: value > 0}}"
    settings = parse_settings(f"instances: {{check: [{instance}]}}", "their.yaml")

    (found,) = warnings(settings, NOW)
    assert found.key == "instances.check[0].config.url"
    assert found.message == (
        "'bananabread' is not a URL; write it like http://service.namespace:9090;"
        " fail is always unknown, and never passes"
    )


def test_a_message_may_be_long() -> None:
    def instance(length: int) -> str:
        return f"{{type: slack, name: s, config: {{hook: x, channel: c, message: {'m' * length}}}}}"

    assert parse_settings(f"instances: {{notify: [{instance(4096)}]}}", "their.yaml")
    (mistake,) = mistakes(f"instances: {{notify: [{instance(4097)}]}}")
    assert "config.message: has 4097 characters; the limit is 4096" in mistake


def test_the_type_of_a_schedule_may_have_capitals() -> None:
    schedule = "{type: Scheduled, config: {instant: 11:00, weekdays: [tue]}}"
    instance = f"{{type: slack, name: s, config: {{hook: x, channel: c, message: m}}, schedule: {schedule}}}"
    found = PROFILES.of(
        parse_settings(f"instances: {{notify: [{instance}]}}", "their.yaml")
    ).instances.notify[0]

    assert (str(found.schedule.settings.instant), found.schedule.settings.weekdays) == ("11:00", {1})


def test_a_key_that_a_type_refuses_comes_with_the_keys_that_it_has() -> None:
    text = "instances: {check: [{type: checkHypervisor, name: h, config: {lifecycle: true}}]}"

    (mistake,) = mistakes(text)
    assert "config.lifecycle: unknown key; the keys here are aggregates, evicted," in mistake


def test_check_config_warns_of_notifications_that_can_not_be_sent() -> None:
    lease = "leaseName: a_b, leaseNamespace: default, period: 1h"
    configs = {
        "slack": "hook: 'SECRET', channel: c",
        "slackThread": f"token: t, channel: c, title: t, {lease}",
        "mail": "address: '169.254.1.1:25', from: a@b.c, to: [d]",
    }
    entries = [
        f"{{type: {kind}, name: {kind}, config: {{message: m, {keys}}}}}" for kind, keys in configs.items()
    ]
    found = warnings(parse_settings(f"instances: {{notify: [{', '.join(entries)}]}}", "their.yaml"), NOW)

    assert [one.key for one in found] == [
        "instances.notify[0].config.hook",
        "instances.notify[1].config.leaseName",
        "instances.notify[2].config.address",
        "instances.notify[2].config.to",
    ]
    assert all(one.message.endswith("is never sent") for one in found)
    assert "SECRET" not in str(found)


def test_check_config_says_when_notifications_are_sent() -> None:
    slack = "type: slack, config: {hook: 'https://x', channel: c, message: m}"
    schedule = "schedule: {type: scheduled, config: {instant: '08:00', weekdays: [mon]}}"
    text = (
        f"instances: {{notify: [{{name: a, {slack}}}, {{name: b, {slack}, {schedule}}}]}}\n"
        "profiles: [{name: os, operational: {notify: a}, in-maintenance: {notify: a}}]"
    )
    said = explain_settings(parse_settings(text, "their.yaml"))

    assert "Notification a (slack): every 1h, in operational of os, in-maintenance of os." in said
    assert "Notification b (slack): Mon at 08:00, in no state of a profile." in said


def test_check_config_warns_of_notifications_in_mode_observe() -> None:
    slack = "{type: slack, name: s, config: {hook: 'https://x', channel: c, message: m}}"
    found = warnings(parse_settings(f"profiles: {{instances: {{notify: [{slack}]}}}}", "x.yaml"), NOW)

    assert "profiles.instances.notify[0]: is not sent in mode Observe; set another mode" in map(str, found)


def test_names_that_do_not_exist_are_said_beside_other_mistakes() -> None:
    text = """mode: Enfroce
profiles:
  instances:
    check:
    - {type: hasLabel, name: a, config: {kye: a}}
  profiles:
  - name: p
    operational: {transitions: [{check: a && b, next: maintenance-required, trigger: t}]}
"""
    found = "\n".join(mistakes(text))

    assert "mode: 'Enfroce'" in found
    assert "config.kye: unknown key" in found
    assert "transitions[0].check: instances.check has no 'b'" in found
    assert "transitions[0].trigger: instances.trigger has no 't'" in found
    assert "has no 'a'" not in found


def test_a_profile_that_no_node_has_any_more_is_named() -> None:
    key = "node-maintenance.dev/maintenance-profile"
    states = "operational: {}, maintenance-required: {}, in-maintenance: {}"
    texts = [f"profiles: {{profiles: [{{name: {name}, {states}}}]}}" for name in ("web", "wbe")]
    nodes = [({key: "web"}, 3), ({}, 1)]
    before, after = (coverage_of(parse_settings(text, "x.yaml"), nodes) for text in texts)

    assert [str(each).partition(";")[0] for each in losses(before, after)] == [
        "profiles.profiles.web: is gone, and 3 nodes had it"
    ]
