"""Every command prints with ``--json`` what its schema in `docs/schemas` says, and no more."""

from __future__ import annotations

import copy
import json
import re
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import click
import pytest
from support.observed.asking import ASKING
from support.printed_json import BEGIN, SCHEMAS, alternatives, command_of, kind_of, kinds_of
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.cli import CommandLine
from support.starting.home import PATIENCE_S, Home
from support.starting.running import until
from support.tapes.log_records import record_of, request_of

from playhead_cli.app import COMMANDS, GROUPS, playhead
from playhead_cli.json_output.commands import OF_COMMANDS
from playhead_receiver.ingest.otlp_json import export_json

AGENT = f"""
import os, sys
import playhead
from playhead_checkpoint import SqliteCheckpoints
{ASKING}
TOOL = "Use a tool."
open("made.txt", "w").write("made")
print(asked("Where is order 81?"), flush=True)
if "KILLED" in os.environ:
    os.kill(os.getpid(), 9)
print(asked("And 82?"))
answered(messages=[{{"role": "user", "content": TOOL}}])
playhead.checkpoint(label="asked")
with SqliteCheckpoints("kept.sqlite") as store:
    store.put({{"orders": [81, 82]}})
sys.exit("BROKEN" in os.environ)
"""
LINES = """
record agent.py
record agent.py | BROKEN=1
record agent.py | KILLED=1
ls
show agent-1
show agent-1:1
show agent-2:3.1
show agent-1 --custody
show agent-1:1 --state
show agent-1 --events
show agent-1 --files
show agent-1 --checkpoints
show agent-1 --artifacts
search order
search --rebuild
stats --by status
tail agent-1
resume agent-3
fork agent-1:1 --edit response.choices[0].message.content=lost
replay agent-1
replay agent-1 --from 1
export agent-1 -o agent.tape
verify
verify agent.tape
show agent.tape --custody
import agent.tape
diff agent-1 agent-2
diff --state agent-1:1 agent-1:2
state agent-1:1
blame agent-1:1 --value order
time agent-1
note agent-1:1 long --score tone=0.5
checkpoints agent-1
checkpoints agent-1 --into again.sqlite
events agent-1
import said.jsonl
logs shop-1
rollback agent-1 --to c1
variability agent-1 agent-2
flow agent:agent
conform agent:agent --workflow code-generation
workflow discover agent:agent
experience make agent:agent -o experience
summary agent-1
diagram agent-1
agents agent-1
compare agent:agent status:success status:failure
failures
like last
sql VALUES(1)
artifacts agent-1
artifacts agent-1 --get made.txt -o taken.txt
workspace agent-1
workspace agent-1 --diff 0
golden add agent-1 --name agent --dir goldens --expect status=failure
golden ls --dir goldens
golden update agent --dir goldens
golden rm agent --dir goldens --yes
doctor
doctor --config
gc --mark agent-1 held
gc --dry-run
gc --yes
redact agent-2
rederive
backup copy
restore copy | PLAYHEAD_DATA_DIR=restored
token create ci --scope read
token list
token revoke ci
record agent.py | PLAYHEAD_ENDPOINT=http://127.0.0.1:9
spool ls
spool push
delete agent-4 --dry-run
delete agent-4 --yes
show agent-4 --custody
completion bash
demo --keep
demo --env
demo --stop
show nothing-9
""".strip().splitlines()
"""What is typed, one after the other, each with ``--json``, and behind a bar its environment."""
FAILS = LINES[-1]


def commands(command: click.Command = playhead, path: str = "") -> Iterator[str]:
    """The words of each command that runs: ``ls``, ``golden add``."""
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands(below, f"{path} {name}".strip())


def named(words: Sequence[str], home: Home) -> Iterator[tuple[str, str]]:
    """Schema and kind of each object that is printed."""
    line, _, more = " ".join(words).partition(" | ")
    typed = line.split()
    at = typed.index("agent.py") if typed[0] == "record" else len(typed)
    typed.insert(at, "--json")
    environ = {**home.environ, **dict(one.split("=", 1) for one in more.split())}
    done = home.playhead(*typed, env=environ)
    found = list(kinds_of(typed, done.stdout, done.stderr))
    failed = [kind for name, kind in found if name == "error"]
    assert found and bool(failed) == (line == FAILS), f"{line}: {done.stdout}{done.stderr}"
    yield from found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    def answer(request: Request) -> Any:
        question = request.json["messages"][-1]["content"]
        if question == "Use a tool.":
            call = openai_chat.tool_call("c1", "search", {"order": 81})
            return json_reply(openai_chat.completion(tool_calls=[call]))
        return json_reply(openai_chat.completion(f"to {question}"))

    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        variables = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
        home = Home(tmp_path_factory.mktemp("printed"), variables)
        (home.folder / "agent.py").write_text(AGENT)
        said = request_of(record_of(b"t" * 16, 1, {"orders": [81]}, logger="shop"))
        (home.folder / "said.jsonl").write_bytes(export_json(said))
        yield home
        home.playhead("demo", "--stop")


def listening(home: Home) -> Iterator[tuple[str, str]]:
    """Schema and kind of what `playhead up` prints, and `playhead open` while it runs."""
    ports = ("--http-port", "0", "--grpc-port", "0", "--query-port", "0")
    up = home.start("up", "--json", *ports)
    assert up.stdout is not None
    try:
        yield "up", kind_of("up", json.loads(up.stdout.readline()))
        yield from named(["open"], home)
    finally:
        up.send_signal(signal.SIGTERM)
        up.communicate(timeout=PATIENCE_S)


ASKS = """
import json, os, urllib.error, urllib.request

for number in range(5):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": "m", "messages": [{"role": "user", "content": str(number)}]}).encode(),
        {"content-type": "application/json"},
    )
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError:
        pass
"""
ORDERS = """
pause asks-1 --wait 60s
checkpoint asks-1 --label here --wait 60s
edit asks-1 messages[0].content=other
step asks-1 --wait 60s
reject asks-1
pause asks-1 --wait 60s
answer asks-1 {}
pause asks-1 --wait 60s
continue asks-1
""".strip().splitlines()


def controlled(home: Home) -> Iterator[tuple[str, str]]:
    """Schema and kind of what commands print that control a running agent."""
    (home.folder / "asks.py").write_text(ASKS)
    agent = home.start("record", "--control", "pause model=*", "asks.py")
    try:
        until(lambda: home.playhead("pause", "asks-1").returncode == 0, "it takes orders")
        for line in ORDERS:
            yield from named(line.split(), home)
    finally:
        agent.kill()
        agent.communicate(timeout=PATIENCE_S)


@pytest.mark.timeout(600)
def test_every_kind_of_object_is_printed_as_its_schema_says(home: Home):
    seen = set(listening(home)) | set(controlled(home))
    for line in LINES:
        seen |= set(named(line.split(), home))
    seen.add(("replay", "SemanticReport"))  # of a run without a tape: tests/replay/semantic
    described = {path.stem for path in SCHEMAS.glob("*.json")}
    assert {(name, kind) for name in described for kind in alternatives(name)} == seen


def test_every_command_that_prints_has_a_schema():
    short = {re.sub(rf"^({'|'.join(GROUPS)}) ", "", command) for command in commands()}
    assert sorted(short - {"mcp", "browse"}) == sorted(OF_COMMANDS)
    files = {path.stem for path in SCHEMAS.glob("*.json")}
    assert files == {command_of(command.split()) for command in OF_COMMANDS} | {"error"}
    assert {word for command in commands() for word in command.split()} >= set(COMMANDS)


FREE = ("attributes", "value", "variables", "input_messages", "output_messages", "tool_definitions")
"""Fields that hold what others say, under names of theirs."""


def described_places(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value:
            yield value
        for name, below in value.items():
            if name not in FREE:
                yield from described_places(below)
    for below in value if isinstance(value, list) else ():
        yield from described_places(below)


@pytest.mark.parametrize("words", ["ls", "show", "show refund-1:1", "show --custody"])
def test_a_field_that_the_schema_does_not_name_is_found_wherever_it_stands(
    playhead: CommandLine, refund_1: str, words: str
):
    printed = json.loads(playhead(*words.split(), "--json").out)
    name = words.split()[0]
    kind_of(name, printed)
    for number, _ in enumerate(described_places(printed)):
        more = copy.deepcopy(printed)
        list(described_places(more))[number]["surprise"] = 1
        with pytest.raises(AssertionError, match="surprise"):
            kind_of(name, more)


def test_a_field_that_is_missing_is_found(playhead: CommandLine, refund_1: str):
    printed = json.loads(playhead("ls", "--json").out)
    del printed["runs"][0]["cost_usd"]
    with pytest.raises(AssertionError, match="'cost_usd' is a required property"):
        kind_of("ls", printed)


def test_an_error_is_described(playhead: CommandLine):
    done = playhead("show", "nothing-9", "--json")
    assert done.err.startswith(BEGIN)
    assert list(kinds_of(("show", "--json"), done.out, done.err)) == [("error", "Failure")]


def test_sums_and_lists_of_no_store_are_described(playhead: CommandLine):
    assert not playhead.data_dir.exists()
    assert json.loads(playhead("stats", "--json").out)["total"]["runs"] == 0
    assert json.loads(playhead("ls", "--json").out)["runs"] == []
