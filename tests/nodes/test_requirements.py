"""A machine that can't have real nodes is told what it lacks, and how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nodes import __main__ as program
from tests.nodes import requirements


def test_another_system_needs_a_virtual_machine() -> None:
    assert requirements.missing(system="darwin") == [
        "Real nodes need Linux, and this is darwin. Run it in a virtual machine."
    ]


def test_who_is_not_root_is_told_the_command() -> None:
    assert any("sudo .venv/bin/nox -s nodes" in line for line in requirements.missing(user=1000))


def test_all_missing_packages_are_one_line_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "PLUGINS", (tmp_path,))

    line = requirements.missing(str(tmp_path), user=0)[-1]

    assert line.endswith(
        "apt-get install --no-install-recommends"
        " buildah debootstrap util-linux containerd runc iptables iproute2 mount busybox-static"
        " containernetworking-plugins"
    )


def test_a_busybox_that_needs_libraries_is_not_enough(tmp_path: Path) -> None:
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"\x7fELF /lib64/ld-linux-x86-64.so.2\0")
    busybox.chmod(0o755)

    assert "a static busybox" in requirements.missing(str(tmp_path), user=0)[-1]


def test_scenarios_that_need_ipv6_are_named_on_a_kernel_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "IPV6", tmp_path / "ipv6")
    line = "This kernel has no IPv6, which ipv6 and dualstack need. Run modprobe ipv6, or name the others."

    assert line in requirements.missing(ipv6=["ipv6", "dualstack"])
    assert line not in requirements.missing()


def test_the_program_then_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["nodes"])
    monkeypatch.setattr(requirements, "missing", lambda **_: ["Not installed: runc."])

    assert program.main() == program.CANNOT_RUN == 2
    assert "Not installed: runc." in capsys.readouterr().err
