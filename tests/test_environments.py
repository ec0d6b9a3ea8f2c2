"""What is installed without resolving dependencies has all that the distributions need."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LISTED = (ROOT / "tests" / "programs" / "requirements.txt").read_text("utf-8").splitlines()
AGENTS = ("semconv", "instrumentation", "exporter")


def normal(requirement: str) -> str:
    """The name of a distribution, as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[]", requirement.strip())[0]).lower()


@pytest.mark.parametrize("room", AGENTS)
def test_programs_of_others_are_installed_with_what_a_room_declares(room: str):
    project = tomllib.loads((ROOT / room / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {normal(one) for one in project["dependencies"] if not one.startswith("playhead")}
    assert needed and needed <= {normal(line) for line in LISTED}
