"""The commands of docs/helm.md, as they stand there, lead to a page with a case on it, and away again."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import urllib3
import yaml

from tests.nodes import images
from tests.nodes.cluster import NAMESPACE, Cluster, Object, await_
from tests.nodes.scene import SETTLE
from tests.nodes.shell import Shell, blocks, commands
from tests.support.tools.building import find_tool

LONGEST = 300
"""Seconds from the first command to a case on the page."""

KINDS = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
"""Of a release, without a namespace."""


def play(cluster: Cluster) -> str:
    """Follow the pages with nothing but a checkout, its command line, kubectl and helm."""
    reconciler = Path(sys.executable).with_name("reconciler")
    shell = Shell(cluster, "helm", {"helm": find_tool("helm"), "reconciler": reconciler})
    try:
        return _follow(cluster, shell)
    except Exception:
        # With the Pods, their logs would go.
        cluster.keep()
        raise
    finally:
        shell.run(*commands("helm.md", "Uninstall with Helm"), check=False)


def _follow(cluster: Cluster, shell: Shell) -> str:
    install, test = commands("helm.md", "Install with Helm")
    values = yaml.safe_load(blocks("helm.md", "Install with Helm", "yaml")[0])
    values["image"]["repository"] = images.NAME
    # It is for Azure, and asks the address that VMs have for it.
    del values["agent"]
    node = cluster.nodes[0]
    began = time.monotonic()

    _write(shell, values)
    notes = shell.run(install)
    assert "WARNING" not in notes, notes
    pods = await_(
        "two replicas that are Ready",
        lambda: pods if len(pods := _replicas(cluster)) == 2 else None,
        seconds=LONGEST,
    )
    ready = time.monotonic() - began
    cluster.announce(node, "Redeploy", datetime.now(UTC) + timedelta(minutes=10), event_id="H1")
    tested = shell.run(test)
    passed = time.monotonic() - began
    assert "Succeeded" in tested, tested
    assert node.name in tested, f"no report about {node.name} in:\n{tested}"
    seconds = []
    for open_it in commands("page.md", "Open it"):
        with shell.start(f"exec {open_it}") as forward:
            try:
                case = await_("a case on the page", lambda: _case(node.name), seconds=60)
            finally:
                # Not by force: it ends another program with it.
                forward.terminate()
        seconds.append(time.monotonic() - began)
        assert "Redeploy" in case, f"the page says of {node.name}: {case}"
    seen = seconds[0]
    assert seen < LONGEST, f"{seen:.0f} s until the page had a case"
    writes = [entry.uri for entry in cluster.audit(verbs=["patch"]) if entry.resource == "nodes"]
    assert not writes, f"the mode is Observe, but it wrote {writes}"

    values["settings"] |= {"mode": "Enforce", "uncordon": {"settle": f"{SETTLE}s"}}
    _write(shell, values)
    shell.run(install)
    await_("the end of the drain", lambda: cluster.said(node, "MaintenanceDrained"), seconds=120)
    assert cluster.cordoned(node)
    cluster.call_off(node)
    await_("the uncordon", lambda: not cluster.cordoned(node), seconds=SETTLE + 60)
    await_("the end of the case", lambda: not cluster.in_maintenance(node), seconds=30)
    # One on the drained node was moved.
    kept = {pod["metadata"]["uid"] for pod in pods if pod["spec"]["nodeName"] != node.name}
    assert kept <= {pod["metadata"]["uid"] for pod in _replicas(cluster)}, "other settings restarted a Pod"
    assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"

    shell.run(*commands("helm.md", "Uninstall with Helm"))
    left = cluster.kubectl("get", KINDS, "--selector=app.kubernetes.io/managed-by=Helm", "--output=name")
    assert not left, f"helm uninstall left {left}"
    assert cluster.api.find("namespaces", NAMESPACE) is None
    return (
        f"By the commands of the docs: Ready after {ready:.0f} s, `helm test` passed after {passed:.0f} s,"
        f" the page had a case after {seen:.0f} s. Nothing was written before the mode was Enforce, and"
        " nothing is left after the removal"
    )


def _write(shell: Shell, values: Object) -> None:
    (shell.folder / "values.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")


def _case(node: str) -> str | None:
    """Return the text about a node among the cases of the page, if it has one."""
    with urllib3.PoolManager(retries=False, timeout=10) as pool:
        text = pool.request("GET", "http://127.0.0.1:8080/").data.decode()
    cases = text.partition('<h2 id="cases">')[2].partition("</section>")[0]
    rows = [re.sub(r"<[^>]+>", " ", row) for row in cases.split("<tr")]
    return next((row for row in rows if node in row), None)


def _replicas(cluster: Cluster) -> list[Object]:
    # The Pod of a test has the same namespace.
    return cluster.ready_pods(NAMESPACE, "app.kubernetes.io/component=serve")
