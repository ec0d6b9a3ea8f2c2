"""The LC_CTYPE that an interpreter sets for itself is taken back before it starts a program."""

import os
import subprocess
import sys

import pytest

PRINTS = """
import os, sys
from playhead_core.process.coerced_locale import as_started
print(os.environ.get("LC_CTYPE"), as_started({**os.environ, "OTHER": "1"}).get("LC_CTYPE"))
"""
UNSET = {"LANG", "LC_ALL", "LC_CTYPE", "PYTHONCOERCECLOCALE"}


@pytest.mark.parametrize(
    ("variables", "now", "started"),
    [
        ({}, "C.UTF-8", "None"),
        ({"LC_CTYPE": "C", "LANG": "xx"}, "C.UTF-8", "C"),
        ({"LC_CTYPE": "C.UTF-8"}, "C.UTF-8", "C.UTF-8"),
        ({"LC_CTYPE": "UTF-8"}, None, "UTF-8"),
        ({"PYTHONCOERCECLOCALE": "0"}, "None", "None"),
    ],
)
def test_what_python_has_set_is_taken_back(variables: dict[str, str], now: str | None, started: str):
    environ = {name: value for name, value in os.environ.items() if name not in UNSET}
    words = [sys.executable, "-c", PRINTS]
    done = subprocess.run(words, env=environ | variables, capture_output=True, text=True, check=True)
    found = done.stdout.split()
    assert now is None or found[0] == now
    assert found[1] == started
