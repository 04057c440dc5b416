"""Revisions of the settings: `serve` with the rights of the manifests, and what a person asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.features.revisions import KEPT_IN
from reconciler.features.revisions.client import write_text
from reconciler.features.revisions.keeping import CHANGED
from reconciler.features.revisions.revisions import Kept, to_text
from reconciler.kubernetes.config_maps import read_settings
from reconciler.model.content import ConfigMapName
from reconciler.model.errors import Conflict
from tests.real.manifests.applying import applied, built
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import Done, Object, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.proxy import Cut, Proxy

pytestmark = pytest.mark.slow

SYSTEM = "node-maintenance"
POLICY = f"configmap/{SYSTEM}/maintenance-policy"
FIRST = "mode: Enforce\nuncordon: {settle: 0s}\n"
SECOND = f"{FIRST}nodeSelector: {{pool: none}}\nbudget: {{maxUnavailable: 2}}\n"


def push(scene: Scene, programs: Programs, text: str) -> None:
    """Change the ConfigMap with the settings, and the file as which it is mounted."""
    patch = {"data": {"maintenance.yaml": text}}
    scene.api.patch("configmaps", "maintenance-policy", patch, namespace=SYSTEM)
    programs.configure(text)


def text_of(scene: Scene) -> str:
    """The text of the revisions that are kept, empty without any."""
    found = scene.api.find("configmaps", KEPT_IN, SYSTEM)
    return str(found["data"]["revisions"]) if found is not None else ""


def revisions(scene: Scene) -> list[Object]:
    """The revisions that are kept."""
    text = text_of(scene)
    return list(json.loads(text)["revisions"]) if text else []


@contextmanager
def served(scene: Scene, programs: Programs) -> Iterator[Running]:
    """`serve` with the first settings and the rights of the manifests, once its revision is kept."""
    push(scene, programs, FIRST)
    kubeconfig = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)
    serving = programs.start("serve", "--every", "1s", kubeconfig=kubeconfig)
    try:
        serving.does("the first revision", lambda: len(revisions(scene)) == 1)
        yield serving
    finally:
        serving.kill()


def asked(programs: Programs, *arguments: str, kubeconfig: Path | None = None) -> Done:
    return programs.run("settings", *arguments, kubeconfig=kubeconfig)


def test_what_was_used_is_listed_shown_and_compared_with_the_rights_of_the_manifests(
    scene: Scene, programs: Programs
) -> None:
    scene.node()
    (role,) = built("report")
    with (
        applied(scene.controlplane, "base"),
        applied(scene.controlplane, "report"),
        account(scene, role["metadata"]["name"]) as reader,
    ):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        none = once_permitted(lambda: asked(programs, kubeconfig=reader))
        with served(scene, programs) as serving:
            push(scene, programs, SECOND)
            serving.does("the second revision", lambda: len(revisions(scene)) == 2)
            listed = asked(programs, "-o", "json", kubeconfig=reader).document
            shown = asked(programs, "show", "1", kubeconfig=reader)
            compared = asked(programs, "diff", kubeconfig=reader)
            push(scene, programs, "mode: Enforced\n")
            refused = asked(programs, "-o", "json", kubeconfig=reader).document
            with_refused = asked(programs, "diff", kubeconfig=reader)
            unknown = asked(programs, "show", "7", kubeconfig=reader)
            text = asked(programs, kubeconfig=reader)
            windows = programs.run("windows", kubeconfig=reader)
            report = programs.run("report", f"--config={POLICY}", "-o", "json", kubeconfig=reader).document
            file = programs.folder / "checked.yaml"
            file.write_text(FIRST, encoding="utf-8")
            checked = programs.run("check-config", str(file), kubeconfig=reader)
            push(scene, programs, SECOND)
            repaired = programs.run("windows", kubeconfig=reader)

    assert none.code == 0
    assert "there are no revisions yet" in none.out
    assert listed["source"] == f"configmap/{SYSTEM}/maintenance-policy/maintenance.yaml"
    assert [(each["revision"], each["managed"], each["present"]) for each in listed["revisions"]] == [
        (2, 0, True),
        (1, 1, False),
    ]
    assert listed["revisions"][0]["changes"] == ["nodeSelector added", "budget added"]
    assert listed["revisions"][0]["by"], "the field manager of the ConfigMap is not known"
    assert (shown.code, shown.out) == (0, FIRST)
    assert "+nodeSelector: {pool: none}" in compared.out.splitlines()
    assert "mode" in refused["mistakes"][0]
    assert [each["present"] for each in refused["revisions"]] == [False, False]
    assert "+mode: Enforced" in with_refused.out.splitlines()
    assert (unknown.code, unknown.err) == (2, "there is no revision 7: revisions 1 to 2 can be named\n")
    assert "nodeSelector added, budget added; 0 nodes managed" in text.out
    assert windows.code == repaired.code == 0
    assert windows.out.startswith(
        f"settings rejected: configmap/{SYSTEM}/maintenance-policy/maintenance.yaml:1:1"
    )
    assert "; answers from revision 2 of " in windows.out.splitlines()[0]
    assert "settings rejected" not in repaired.out
    assert "mode" in report["refusedSettings"]["mistakes"][0]
    assert report["policy"]["hash"] == listed["hash"]
    assert checked.code == 0
    with_both = checked.out.partition("\nWith revision 2 of ")[2]
    assert with_both.splitlines()[1:3] == ["  nodes managed: 0 before, 1 after", "  cases: 0 before, 0 after"]


def test_a_next_leader_adds_nothing_for_the_same_text_and_replaces_what_is_broken(
    scene: Scene, programs: Programs
) -> None:
    with applied(scene.controlplane, "base"):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        with served(scene, programs):
            before = revisions(scene)
        scene.free_lock()
        with served(scene, programs) as serving:
            serving.wait_for("leading")
            push(scene, programs, SECOND)
            serving.does("the second revision", lambda: len(revisions(scene)) == 2)
            assert revisions(scene)[0] == before[0]
        scene.api.patch("configmaps", KEPT_IN, {"data": {"revisions": "{"}}, namespace=SYSTEM)
        broken = asked(programs)
        scene.free_lock()
        push(scene, programs, FIRST)
        kubeconfig = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)
        serving = programs.start("serve", "--every", "1s", kubeconfig=kubeconfig)
        serving.does("a revision again", lambda: text_of(scene) != "{")
        assert [each["number"] for each in revisions(scene)] == [1]
        serving.kill()

    assert broken.code == 2
    assert f"kubectl delete -n {SYSTEM} configmap {KEPT_IN}" in broken.err


def test_a_change_is_said_once_also_by_a_process_that_was_killed_before_it_wrote_the_revision(
    scene: Scene, programs: Programs
) -> None:
    scene.node()

    def events() -> list[Object]:
        return [each for each in scene.api.list("events", SYSTEM) if each["reason"] == "SettingsChanged"]

    with applied(scene.controlplane, "base"):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        with served(scene, programs) as serving:
            before = text_of(scene)
            push(scene, programs, SECOND)
            (logged,) = serving.wait_for("settings changed")
        # As it is when a process is killed between the Event and the revision.
        scene.api.patch("configmaps", KEPT_IN, {"data": {"revisions": before}}, namespace=SYSTEM)
        scene.free_lock()
        kubeconfig = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)
        again = programs.start("serve", "--every", "1s", kubeconfig=kubeconfig)
        again.wait_for("settings changed")
        assert [each["number"] for each in revisions(scene)] == [1, 2]
        (event,) = events()
        again.kill()

    assert "nodeSelector added, budget added; 1 → 0 nodes managed" in event["message"]
    assert event["involvedObject"]["name"] == KEPT_IN
    assert (logged["because"], logged["level"]) == (event["message"], "info")


RIGHTS: list[Object] = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
]
"""What a person needs for a rollback, beside the rights to read."""


def kept(scene: Scene, *texts: str) -> None:
    """Have revisions of these texts, and the last one as the settings."""
    revisions = Kept()
    for text in texts:
        revisions = revisions.with_text(text.encode(), scene.now, "", 1, 20)
    scene.api.create_namespace(SYSTEM)
    for name, key, text in (
        (KEPT_IN, "revisions", to_text(revisions)),
        ("maintenance-policy", "maintenance.yaml", texts[-1]),
    ):
        scene.api.create("configmaps", {"metadata": {"name": name, "namespace": SYSTEM}, "data": {key: text}})


def policy(scene: Scene) -> str:
    """The settings in their ConfigMap."""
    return str(scene.api.get("configmaps", "maintenance-policy", SYSTEM)["data"]["maintenance.yaml"])


def test_a_rollback_writes_the_text_before_shows_what_it_means_and_is_done_once(
    scene: Scene, programs: Programs
) -> None:
    scene.condition_tells(scene.node())
    kept(scene, FIRST, SECOND)
    with account(scene, "operator", RIGHTS) as kubeconfig:
        once_permitted(lambda: asked(programs, kubeconfig=kubeconfig))
        unasked = asked(programs, "rollback", kubeconfig=kubeconfig)
        assert policy(scene) == SECOND
        done = asked(programs, "rollback", "--yes", "-o", "json", kubeconfig=kubeconfig)
        again = asked(programs, "rollback", "1", "--yes", "-o", "json", kubeconfig=kubeconfig)
        text = asked(programs, "rollback", "2", "--yes", kubeconfig=kubeconfig)

    assert (unasked.code, "give --yes" in unasked.err) == (2, True)
    assert (done.code, again.code, text.code) == (0, 0, 0)
    assert done.document["managed"] == done.document["cases"] == {"before": 0, "after": 1}
    assert (done.document["revision"], done.document["written"]) == (1, True)
    assert "-nodeSelector: {pool: none}" in done.document["diff"]
    assert again.document["written"] is False
    assert "nodes managed: 1 before, 0 after\ncases: 1 before, 0 after\n" in text.out
    assert "warning: nodeSelector: selects none of the 1 node" in text.out
    assert policy(scene) == SECOND


def test_a_text_is_printed_as_it_was_written_and_its_keys_can_not_steer_a_terminal(
    scene: Scene, programs: Programs
) -> None:
    odd = f"{FIRST}# reconciler plan \x9b31m\n"
    kept(scene, FIRST, odd)

    assert asked(programs, "show").out == odd
    assert "\x9b" not in asked(programs, "diff").out


def test_a_refused_text_is_rolled_back_to_the_last_good_one(scene: Scene, programs: Programs) -> None:
    kept(scene, FIRST, SECOND)
    wrong = {"data": {"maintenance.yaml": "mode: Enforced\n"}}
    scene.api.patch("configmaps", "maintenance-policy", wrong, namespace=SYSTEM)
    done = asked(programs, "rollback", "--yes", "-o", "json")

    assert (done.code, done.document["revision"], policy(scene)) == (0, 2, SECOND)


def test_who_may_not_write_the_settings_or_names_a_file_is_told_so_and_nothing_is_written(
    scene: Scene, programs: Programs
) -> None:
    kept(scene, FIRST, SECOND)
    programs.configure(SECOND)
    with account(scene, "onlooker", [{**RIGHTS[0], "verbs": ["get"]}, RIGHTS[1]]) as kubeconfig:
        once_permitted(lambda: asked(programs, kubeconfig=kubeconfig))
        refused = asked(programs, "rollback", "--yes", kubeconfig=kubeconfig)
    in_file = asked(programs, "rollback", "--yes", "--config", str(programs.config))

    assert refused.code == 1
    assert "patch configmaps" in refused.err
    assert in_file.code == 2
    assert "reconciler settings show 1 > FILE" in in_file.err
    assert policy(scene) == SECOND


@pytest.mark.parametrize(("meanwhile", "code"), [("mode: Observe\n", 1), (FIRST, 0)])
def test_of_two_people_at_once_one_writes_and_the_other_is_told(
    scene: Scene, meanwhile: str, code: int
) -> None:
    kept(scene, FIRST, SECOND)
    held = read_settings(scene.connection, ConfigMapName(SYSTEM, "maintenance-policy"))
    scene.api.patch(
        "configmaps", "maintenance-policy", {"data": {"maintenance.yaml": meanwhile}}, namespace=SYSTEM
    )
    if code:
        with pytest.raises(Conflict, match="somebody else has changed it meanwhile, so nothing is written"):
            write_text(scene.connection, held, FIRST.encode())
    else:
        write_text(scene.connection, held, FIRST.encode())

    assert policy(scene) == meanwhile


def test_what_a_controller_wrote_is_rolled_back_with_a_warning(scene: Scene, programs: Programs) -> None:
    kept(scene, FIRST, SECOND)
    path = f"api/v1/namespaces/{SYSTEM}/configmaps/maintenance-policy"
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "maintenance-policy", "namespace": SYSTEM},
        "data": {"maintenance.yaml": f"{SECOND}# of Argo CD\n"},
    }
    headers = {"Content-Type": "application/apply-patch+yaml"}
    query = {"fieldManager": "argocd-controller", "force": "true"}
    scene.api.request("PATCH", path, body, query=query, headers=headers)
    (warning,) = asked(programs, "rollback", "1", "--yes", "-o", "json").document["warnings"]

    assert warning.startswith("argocd-controller wrote these settings, and will write")
    assert policy(scene) == FIRST


THIRD = f"{FIRST}budget: {{maxUnavailable: 3}}\n"


@pytest.mark.parametrize("cut", [Cut(1, before=True), Cut(1, before=False)], ids=str)
def test_a_rollback_that_is_killed_is_repeated_and_goes_no_further_back(
    scene: Scene, programs: Programs, tmp_path: Path, cut: Cut
) -> None:
    kept(scene, FIRST, SECOND, THIRD)
    with Proxy(programs.kubeconfig, replace(cut, of="configmaps")) as proxy:
        process = programs.start(
            "settings", "rollback", "--yes", kubeconfig=proxy.write_kubeconfig(tmp_path / "proxied")
        )
        proxy.ends(process.kill)
        assert process.wait().code == -9
    assert policy(scene) == (THIRD if cut.before else SECOND)
    again = asked(programs, "rollback", "--yes")
    once_more = asked(programs, "rollback", "--yes", "-o", "json")

    assert (again.code, policy(scene)) == (0, SECOND)
    assert (once_more.code, once_more.document["written"]) == (0, False)
    assert (cut.before, "name its revision" in again.out) in ((True, False), (False, True))
    # A person who names it goes on from there.
    assert asked(programs, "rollback", "1", "--yes").code == 0
    assert policy(scene) == FIRST


def test_people_who_go_back_at_once_get_one_result(scene: Scene, programs: Programs) -> None:
    kept(scene, FIRST, SECOND, THIRD)
    running = [programs.start("settings", "rollback", "--yes") for _ in range(4)]
    done = [each.wait() for each in running]

    assert [each.code for each in done] == [0] * 4, [each.err for each in done]
    assert policy(scene) == SECOND
    assert all("the text of revision 2;" in each.out or "name its revision" in each.out for each in done)


ABOUT_REVISIONS = rf"POST .*/{SYSTEM}/events$|/{KEPT_IN}$"


def killed_at(cut: Cut, kubeconfig: Path, scene: Scene, programs: Programs) -> list[str]:
    """Let `serve` run until it is killed at the cut, and free its lock; the writes that count."""
    with Proxy(kubeconfig, cut) as proxy:
        killed = programs.start(
            "serve", "--every", "1s", kubeconfig=proxy.write_kubeconfig(programs.folder / "proxied")
        )
        proxy.ends(killed.kill)
        assert killed.wait().code == -9
    scene.free_lock()
    return proxy.writes


@pytest.mark.parametrize("cut", [Cut(1, True), Cut(1, False)], ids=str)
def test_killed_as_the_first_revision_is_written_the_next_process_keeps_one(
    scene: Scene, programs: Programs, cut: Cut
) -> None:
    with applied(scene.controlplane, "base"):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        kubeconfig = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)
        push(scene, programs, FIRST)
        killed_at(replace(cut, of=f"POST .*/{SYSTEM}/configmaps$"), kubeconfig, scene, programs)
        assert len(revisions(scene)) == (0 if cut.before else 1)
        with served(scene, programs) as serving:
            serving.wait_for("leading")
            push(scene, programs, SECOND)
            serving.does("the second revision", lambda: len(revisions(scene)) == 2)

    assert [each["number"] for each in revisions(scene)] == [1, 2]


@pytest.mark.parametrize("cut", [Cut(1, True), Cut(1, False), Cut(2, True), Cut(2, False)], ids=str)
def test_killed_at_any_write_of_a_revision_the_next_process_ends_in_the_same_state(
    scene: Scene, programs: Programs, cut: Cut
) -> None:
    with applied(scene.controlplane, "base"):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        kubeconfig = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)
        with served(scene, programs):
            pass
        scene.free_lock()
        push(scene, programs, SECOND)
        writes = killed_at(replace(cut, of=ABOUT_REVISIONS), kubeconfig, scene, programs)
        assert len(writes) == cut.number
        again = programs.start("serve", "--every", "1s", kubeconfig=kubeconfig)
        again.wait_for("leading")
        again.does("both revisions", lambda: len(revisions(scene)) == 2)
        # A third one shows that nothing of the second is left to do.
        push(scene, programs, THIRD)
        again.does("the third revision", lambda: len(revisions(scene)) == 3)
        again.kill()
        said = [each["message"] for each in scene.api.list("events", SYSTEM) if each["reason"] == CHANGED]

    assert [each["number"] for each in revisions(scene)] == [1, 2, 3]
    assert sorted(message.partition(" (")[2].partition(")")[0] for message in said) == [
        "revision 2",
        "revision 3",
    ]
