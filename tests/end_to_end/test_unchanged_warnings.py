"""What a program warns of once per place is said once, also when it is recorded."""

from pathlib import Path

import pytest
from support.starting.home import Home

PROGRAM = """
import urllib.request, warnings


def old():
    warnings.warn("this is old", UserWarning)


old()
try:
    urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:9/v1/chat/completions", b"{}"))
except OSError as error:
    print(type(error).__name__)
old()
"""


@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_a_warning_is_said_once(tmp_path: Path, level: str):
    home = Home(tmp_path, {"PLAYHEAD_LEVEL": level})
    script = tmp_path / "warns.py"
    script.write_text(PROGRAM)
    done = home.playhead("record", script)
    assert (done.returncode, done.stdout) == (0, "URLError\n"), done.stderr
    assert done.stderr.count("UserWarning: this is old") == 1
