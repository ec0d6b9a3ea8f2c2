"""The units of `deploy/systemd/`.

systemd does not load them here (`systemd-analyze verify` did, by hand). Checked is that they parse,
that their directives are known ones in the section where they belong, that the commands are accepted by
the command line, and that variables are settings whose values are understood. **Not** checked: that the
receiver can do its work within what the sandboxing directives leave it.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest
from support.commands import VARIABLES, refused

from playhead_core.settings import resolve
from playhead_receiver.storage.retention import policy_of

UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").iterdir())
Unit = dict[str, list[tuple[str, str]]]

KNOWN = {
    "Unit": frozenset("Description Wants After".split()),
    "Install": frozenset(["WantedBy"]),
    "Timer": frozenset("OnCalendar RandomizedDelaySec Persistent".split()),
    "Service": frozenset(
        "Type User WorkingDirectory ExecStart ExecStartPost Environment EnvironmentFile StateDirectory "
        "StateDirectoryMode Restart RestartSec TimeoutStopSec LimitNOFILE CapabilityBoundingSet "
        "LockPersonality NoNewPrivileges PrivateDevices PrivateTmp ProtectClock ProtectControlGroups "
        "ProtectHome ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables "
        "ProtectSystem ReadWritePaths RestrictAddressFamilies RestrictNamespaces RestrictRealtime "
        "RestrictSUIDSGID SystemCallArchitectures SystemCallFilter UMask".split()
    ),
}
"""Directives as `systemd.unit`, `systemd.service`, `systemd.exec` and `systemd.timer` name them."""


def parsed(path: Path) -> Unit:
    unit: Unit = defaultdict(list)
    section = ""
    for line in path.read_text("utf-8").splitlines():
        if not line or line[0] in "#;":
            continue
        head = re.fullmatch(r"\[(\w+)\]", line)
        if head:
            section = head[1]
            assert section not in unit
        else:
            name, found, value = line.partition("=")
            assert section and found and name == name.strip(), f"{path.name}: {line}"
            unit[section].append((name, value))
    return unit


def values(unit: Unit, section: str, name: str) -> list[str]:
    return [value for other, value in unit[section] if other == name]


def environment(unit: Unit) -> dict[str, str]:
    given = [shlex.split(value) for value in values(unit, "Service", "Environment")]
    return dict(word.split("=", 1) for words in given for word in words)


def test_there_are_a_receiver_its_backup_and_an_agent():
    assert [path.name for path in UNITS] == [
        "agent.service",
        "playhead-backup.service",
        "playhead-backup.timer",
        "playhead.service",
    ]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_directives_are_known_where_they_stand(path: Path):
    unit = parsed(path)
    assert "Unit" in unit
    for section, lines in unit.items():
        names = [name for name, _ in lines]
        assert set(names) <= KNOWN[section], section
        once = [name for name in names if name != "Environment"]
        assert len(set(once)) == len(once)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_variables_are_settings_that_are_understood(path: Path):
    given = environment(parsed(path))
    ours = {name: value for name, value in given.items() if name.startswith("PLAYHEAD_")}
    assert set(ours) <= VARIABLES
    policy_of(resolve(ours).settings.retention)
    for name in ("PLAYHEAD_DATA_DIR", "PLAYHEAD_SPOOL_DIR"):
        folder = given.get(name, "/var/lib/").removeprefix("/var/lib/")
        state = values(parsed(path), "Service", "StateDirectory") or [folder.split("/")[0]]
        assert folder.split("/")[0] in ("", state[0])


def commands(path: Path) -> list[list[str]]:
    """Of the unit, what a shell in it runs taken apart, `%%` read as `%`."""
    found = [
        shlex.split(line.replace("%%", "%")) for line in values(parsed(path), "Service", "ExecStart")
    ]
    return [
        shlex.split(words[2].removeprefix("exec ")) if words[:2] == ["/bin/sh", "-c"] else words
        for words in found
    ]


@pytest.mark.parametrize("name", ["playhead.service", "playhead-backup.service"])
def test_commands_are_accepted(name: str):
    (path,) = [path for path in UNITS if path.name == name]
    (words,) = commands(path)
    assert words[0] == "/opt/playhead/bin/playhead"
    assert refused(["playhead", *words[1:]]) == ""


def test_the_timer_is_that_of_a_service():
    (timer,) = [path for path in UNITS if path.suffix == ".timer"]
    assert timer.with_suffix(".service") in UNITS
