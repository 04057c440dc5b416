"""What the settings mean: defaults, partial events, overrides, and whom they look after."""

from datetime import UTC, datetime, timedelta

from reconciler.model.event import Kind
from reconciler.settings.load import parse_settings
from reconciler.settings.policies import DEFAULTS, EventPolicy, OutsideWindow, Treatment, UserInitiated
from reconciler.settings.schema import Mode, Settings, whole_settings

EVERY_DEFAULT = """
apiVersion: node-maintenance.dev/v1alpha1
kind: MaintenancePolicy
mode: Observe
nodeSelector: {}
timeZone: UTC
events:
  Freeze:        {drain: false, leadTime: 15m}
  LiveMigration:
    {drain: false, minDuration: 0s, leadTime: 10m, outsideWindow: Never, emptyDir: Keep, unmanagedPods: Keep}
  Reboot:        {drain: true, leadTime: 15m, outsideWindow: AtDeadline, emptyDir: Keep, unmanagedPods: Keep}
  Redeploy:      {drain: true, leadTime: 15m, outsideWindow: AtDeadline, emptyDir: Evict, unmanagedPods: Keep}
  Preempt:       {drain: true, outsideWindow: Immediately, emptyDir: Evict, unmanagedPods: Evict}
  Terminate: {drain: true, leadTime: 15m, outsideWindow: AtDeadline, emptyDir: Evict, unmanagedPods: Evict}
  Rebalance:     {drain: false}
  Unknown:       {drain: false}
  userInitiated: Report
conditions: {}
windows: []
notAllowed: []
budget:
  maxUnavailable: 10%
  perZone: null
  perPool: null
  spacing: 0s
  exempt: [Preempt, Terminate]
  ignore: {notReadyFor: 30m, quarantined: true}
drain:
  timeout: 30m
  maxConcurrentNodes: 10
  ignoreDaemonSets: true
  maxGracePeriod: null
  skipPods: null
uncordon: {settle: 2m}
adopt: []
coexist:
  aksRemediator: Share
  karpenter: {leave: null}
keys: {prefix: node-maintenance.dev}
overrides: []
"""


def test_the_file_that_says_every_default_is_an_empty_one() -> None:
    said = parse_settings(EVERY_DEFAULT, "all.yaml")

    empty = parse_settings("", "empty.yaml")
    assert said.model_copy(update={"events": whole_settings()().events}) == empty
    assert [said.policies({}).of_kind(kind) for kind in Kind] == [DEFAULTS[kind] for kind in Kind]
    assert empty == whole_settings()()
    assert Settings().mode is Mode.OBSERVE


def test_a_partial_event_keeps_the_rest_of_its_kinds_default() -> None:
    settings = parse_settings("events: {LiveMigration: {drain: true}, Redeploy: {leadTime: 1h}}", "f")

    migration = settings.policies({}).of_kind(Kind.LIVE_MIGRATION)
    assert migration.drain
    assert migration.outside_window is OutsideWindow.NEVER
    assert migration.lead_time == timedelta(minutes=10)
    redeploy = settings.policies({}).of_kind(Kind.REDEPLOY)
    assert redeploy.drain
    assert redeploy.lead_time == timedelta(hours=1)
    assert redeploy.empty_dir is Treatment.EVICT
    assert settings.policies({}).of_kind(Kind.REBOOT) == DEFAULTS[Kind.REBOOT]


OVERRIDES = """
events: {LiveMigration: {minDuration: 5s}}
conditions: {KernelDeadlock: {for: 5m}}
overrides:
- nodeSelector: {agentpool: sessions}
  events:
    LiveMigration: {drain: true, outsideWindow: AtDeadline}
    userInitiated: Drain
  conditions: {KernelDeadlock: {emptyDir: Evict}, DiskFull: {}}
- nodeSelector: {zone: "1"}
  events: {LiveMigration: {drain: false, leadTime: 1m}}
"""


def test_overrides_are_merged_key_by_key_and_later_ones_win() -> None:
    settings = parse_settings(OVERRIDES, "f")

    plain = settings.policies({}).of_kind(Kind.LIVE_MIGRATION)
    sessions = settings.policies({"agentpool": "sessions"}).of_kind(Kind.LIVE_MIGRATION)
    both = settings.policies({"agentpool": "sessions", "zone": "1"}).of_kind(Kind.LIVE_MIGRATION)
    assert (plain.drain, plain.min_duration, plain.outside_window) == (
        False,
        timedelta(seconds=5),
        OutsideWindow.NEVER,
    )
    assert (sessions.drain, sessions.min_duration, sessions.lead_time) == (
        True,
        timedelta(seconds=5),
        timedelta(minutes=10),
    )
    assert (both.drain, both.lead_time, both.outside_window) == (
        False,
        timedelta(minutes=1),
        OutsideWindow.AT_DEADLINE,
    )


def test_overrides_are_found_by_the_labels_that_they_demand() -> None:
    """A node has the policies of every override that selects it, whatever kind of selector that is."""
    entries = "".join(
        f"- nodeSelector: {{{selector}}}\n  events: {{Reboot: {{leadTime: {minutes}m}}}}\n"
        for minutes, selector in enumerate(
            [
                "pool: a",
                "matchExpressions: [{key: pool, operator: In, values: [a, b]}]",
                "matchExpressions: [{key: pool, operator: NotIn, values: [a]}]",
                "matchLabels: {pool: a}, matchExpressions: [{key: zone, operator: Exists}]",
                "",
                "pool: b",
            ],
            start=1,
        )
    )
    settings = parse_settings("overrides:\n" + entries, "f")

    def lead(index: int, labels: dict[str, str]) -> bool:
        """Whether the last override that selects the node is this one, without those behind it."""
        some = settings.model_copy(update={"overrides": settings.overrides[: index + 1]})
        return some.policies(labels).of_kind(Kind.REBOOT).lead_time == timedelta(minutes=index + 1)

    for labels in ({}, {"pool": "a"}, {"pool": "b"}, {"pool": "a", "zone": "1"}, {"zone": "1"}):
        for index, override in enumerate(settings.overrides):
            assert lead(index, labels) == override.node_selector.matches(labels), (index, labels)


def test_a_condition_asks_for_a_drain_where_the_settings_name_it() -> None:
    settings = parse_settings(OVERRIDES, "f")
    sessions = {"agentpool": "sessions"}

    assert settings.policies({}).of_condition("KernelDeadlock") == EventPolicy(
        drain=True, for_=timedelta(minutes=5)
    )
    assert settings.policies(sessions).of_condition("KernelDeadlock") == EventPolicy(
        drain=True, for_=timedelta(minutes=5), empty_dir=Treatment.EVICT
    )
    assert settings.policies({}).of_condition("DiskFull") is None
    assert settings.policies(sessions).of_condition("DiskFull") == EventPolicy(drain=True)
    assert settings.condition_types() == {"KernelDeadlock", "DiskFull"}


def test_which_settings_treat_a_users_own_event_as_the_platforms() -> None:
    settings = parse_settings(OVERRIDES, "f")

    assert settings.policies({}).user_initiated is UserInitiated.REPORT
    assert settings.policies({"agentpool": "sessions"}).user_initiated is UserInitiated.DRAIN
    assert Settings().policies({}).user_initiated is UserInitiated.REPORT


def test_the_ignore_label_takes_a_node_out_but_not_out_of_the_fleet() -> None:
    settings = parse_settings("nodeSelector: {a: b}\nkeys: {prefix: my.example}", "f")

    assert settings.manages({"a": "b"})
    assert not settings.manages({})
    assert not settings.in_fleet({})
    assert not settings.manages({"a": "b", "my.example/ignore": "true"})
    assert settings.in_fleet({"a": "b", "my.example/ignore": "true"})
    assert settings.manages({"a": "b", "my.example/ignore": "false"})
    assert settings.manages({"a": "b", "node-maintenance.dev/ignore": "true"})


def test_a_changed_copy_has_a_calendar_of_its_own() -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    closed = parse_settings('windows: [{days: [sun], start: "01:00"}]', "f")
    assert not closed.calendar.at(now, {}).open

    assert closed.model_copy(update={"windows": ()}).calendar.at(now, {}).open


def test_sections_left_empty_are_as_if_they_were_not_there() -> None:
    text = "budget:\ndrain:\nwindows:\nconditions: {A: }\nnodeSelector:\nevents:\n  Reboot:\noverrides:\n"

    settings = parse_settings(text, "f")

    assert settings.budget == Settings().budget
    assert settings.condition_types() == {"A"}
    assert settings.policies({}).of_kind(Kind.REBOOT) == DEFAULTS[Kind.REBOOT]
