"""A recording whose endpoint does not answer says one thing, and names the run that waits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.starting.home import Home

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

NOBODY = "http://127.0.0.1:9"

AGENT = """
import playhead

@playhead.tool(effect="read")
def look(number):
    return {"number": number}

print(look(81))
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "agent.py").write_text(AGENT)
    return Home(tmp_path, {})


def test_what_waits_is_named_and_can_be_delivered_and_shown_by_that_name(home: Home):
    done = home.playhead("record", "agent.py", env={**home.bare, "PLAYHEAD_ENDPOINT": NOBODY})
    assert (done.returncode, done.stdout) == (0, "{'number': 81}\n")
    # A program that lives for a while says of its own that nobody listens.
    own = f"playhead: {NOBODY}: "
    _, said = [line for line in done.stderr.splitlines() if not line.startswith(own)]
    waits = r"playhead: run ([0-9a-f]{8}) waits in the spool, \d+ facts and \d+ spans, nothing lost: "
    found = re.match(waits, said)
    assert found is not None and f"{NOBODY}: " in said, done.stderr
    pushed = home.playhead("spool", "push", "--all")
    assert pushed.returncode == 0, pushed.stderr
    assert home.playhead("show", found[1]).stdout.startswith("agent-1 success")


def test_in_json_it_is_one_object(home: Home):
    environ = {**home.bare, "PLAYHEAD_ENDPOINT": NOBODY, "PLAYHEAD_QUIET": "1"}
    done = home.playhead("record", "--json", "agent.py", env=environ)
    said = json.loads(done.stderr)
    assert (said["name"], said["endpoint"], said["exit_code"]) == (None, NOBODY, 0)
    assert said["undelivered"]["facts"] > 0 and NOBODY in said["problem"]
    assert home.playhead("spool", "push", "--all").returncode == 0
    [run] = home.runs()
    assert run["trace_id"] == said["trace_id"]


def test_an_endpoint_that_is_the_receiver_of_the_data_folder_has_named_it(home: Home):
    with Receiver(home.data_dir, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        environ = {**home.bare, "PLAYHEAD_ENDPOINT": receiver.http_endpoint}
        done = home.playhead("record", "agent.py", env=environ)
    assert done.stderr.splitlines()[1].startswith("playhead: agent-1 success, 1 step, ")
