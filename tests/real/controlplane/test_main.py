"""A person's control plane: what it prints works, and SIGTERM ends it without a trace."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.controlplane.api import Api
from tests.support.controlplane.server import ControlPlane


def test_what_it_prints_works_and_sigterm_ends_it(controlplane: ControlPlane) -> None:
    command = [sys.executable, "-m", "tests.support.controlplane", "--nodes", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as person:
        assert person.stdout is not None
        reported = ""
        while "Ctrl-C" not in reported:
            line = person.stdout.readline()
            assert line, "it ended too early"
            reported += line
        kubeconfig = Path(reported.partition("export KUBECONFIG=")[2].split()[0])

        # All that is indented is for a shell.
        script = "\n".join(line for line in reported.splitlines() if line.startswith("  "))
        subprocess.run(["sh", "-ec", script], check=True, stdout=subprocess.DEVNULL, env={**os.environ})

        with Api(kubeconfig) as api:
            node = api.get("nodes", "aks-np-12345678-vmss000000")
        person.send_signal(signal.SIGTERM)
        assert person.wait(20) == 0

    conditions = {each["type"]: each for each in node["status"]["conditions"]}
    assert conditions["VMEventScheduled"]["message"].startswith("Reboot Scheduled: ")
    assert '"kind":"Reboot"' in node["metadata"]["annotations"]["node-maintenance.dev/request"]
    assert not kubeconfig.parent.exists()
