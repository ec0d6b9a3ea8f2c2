"""Recorded traffic of providers through their real SDKs: what is recorded is what the SDK understood.

A scripted server answers each request as the provider once did, byte for byte. One program a provider
makes all requests with the real SDK. It is recorded, and replayed with the server gone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from support.answers.cassettes import Interaction, own, recorded
from support.servers.scripted import ScriptedServer
from support.starting.home import Home

from playhead_genai.messages import Reasoning, Text, ToolCall
from playhead_receiver.storage import open_store
from playhead_replay import Run
from playhead_replay.run.messages import Messages
from playhead_semconv import attributes as a

HERE = Path(__file__).parent
DERIVED = (
    a.GEN_AI_OPERATION_NAME,
    a.GEN_AI_REQUEST_MODEL,
    a.GEN_AI_RESPONSE_MODEL,
    a.GEN_AI_RESPONSE_ID,
    a.GEN_AI_RESPONSE_FINISH_REASONS,
    a.GEN_AI_REQUEST_MAX_TOKENS,
    a.GEN_AI_REQUEST_TEMPERATURE,
    a.GEN_AI_REQUEST_SEED,
    a.GEN_AI_REQUEST_STREAM,
    a.GEN_AI_USAGE_INPUT_TOKENS,
    a.GEN_AI_USAGE_OUTPUT_TOKENS,
    a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
)
"""What a call means, whoever made it."""


@dataclass(frozen=True)
class Sdk:
    """An SDK, and whose requests it makes."""

    program: str
    provider: str
    needs: tuple[str, ...] = ()
    """Distributions that are installed for it."""
    only: bytes = b""
    """Requests without these bytes are not its own."""

    def asked(self, all_there_are: bool) -> list[Interaction]:
        there = own() + (recorded() if all_there_are else [])
        return [one for one in there if one.provider == self.provider and self.only in one.body]


SDKS = {
    "openai": Sdk("openai_calls.py", "openai-v2"),
    "boto3": Sdk("boto3_calls.py", "botocore"),
    "anthropic": Sdk("anthropic_calls.py", "botocore", only=b"anthropic_version"),
    "google-genai": Sdk("genai_calls.py", "google-genai", ("google-genai",)),
    "vertexai": Sdk("vertex_calls.py", "vertexai", ("google-cloud-aiplatform",)),
}
FINISHED = {
    "tool_calls": "tool_call",
    "tool_use": "tool_call",
    "completed": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "stop": "stop",
    "finish": "stop",
    "complete": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "length": "length",
}
"""Reasons of providers, in lower case, in the words of the conventions."""


def plan(folder: Path, asked: list[Interaction]) -> Path:
    path = folder / "plan.json"
    lines = [
        {"url": one.url, "body": one.body.decode(), "asynchronous": "async" in one.name} for one in asked
    ]
    path.write_text(json.dumps(lines))
    return path


@dataclass(frozen=True)
class Call:
    """What a step of a recording means."""

    attributes: dict[str, Any]
    messages: Messages

    @property
    def meaning(self) -> tuple[dict[str, Any], Messages]:
        at = self.attributes
        return {name: at[name] for name in DERIVED if name in at}, self.messages


def recorded_calls(
    home: Home, program: str, asked: list[Interaction], *more: Path
) -> tuple[list[Call], str]:
    """The calls of a recording that replays identical, and what the program said."""
    with ScriptedServer() as server:
        server.script([one.reply() for one in asked])
        script = HERE / program
        done = home.playhead("record", script, server.url, plan(home.folder, asked), *more)
    assert done.returncode == 0, done.stderr
    for sent, one in zip(server.requests, asked, strict=True):
        path = urlsplit(sent.path).path
        assert unquote(path) == unquote(urlsplit(one.url).path)
        assert fields_of(sent.body) == fields_of(one.body)
    home.playhead("rederive")
    status, report = home.report("last")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", []), report
    store = open_store(home.data_dir, read_only=True)
    try:
        run = Run.load(store, "last")
        calls = [Call(step.span.attributes, run.messages(step)) for step in run.steps]
    finally:
        store.close()
    return calls, done.stdout


OF_THE_SDK = ("encoding_format", "anthropic_version")
"""Fields that an SDK sets by itself, each version in its own way."""


def fields_of(body: bytes) -> Any:
    fields = json.loads(body) if body else {}
    return {name: value for name, value in fields.items() if name not in OF_THE_SDK}


def check(calls: list[Call], asked: list[Interaction], heard: list[dict[str, Any]]) -> None:
    """Each call means what the SDK understood."""
    for call, one, said in zip(calls, asked, heard, strict=True):
        messages, at = call.messages, call.attributes
        where = f"{one.provider} {one.name} {one.url}"
        body = json.loads(one.body or b"{}")
        assert given(messages) == sorted(texts_in(body)), where
        assert offered(messages) == tools_in(body), where
        assert bool(at.get(a.ERROR_TYPE)) == (said["error"] is not None), where
        assert texts(messages) == [text for text in said["texts"] if text], where
        assert called(messages) == said["calls"], where
        reasons = list(at.get(a.GEN_AI_RESPONSE_FINISH_REASONS, ()))
        assert reasons == [FINISHED[reason.lower()] for reason in said["finish"]], where
        assert at.get(a.GEN_AI_USAGE_INPUT_TOKENS) == said["input"], where
        assert at.get(a.GEN_AI_USAGE_OUTPUT_TOKENS) == said["output"], where
        assert at.get(a.GEN_AI_REQUEST_MODEL) or not one.body, where


def texts(messages: Messages) -> list[str]:
    """What is said in each message of the answer that says anything."""
    found = [
        "".join(part.content for part in message.parts if isinstance(part, Text))
        for message in messages.output
    ]
    return [text for text in found if text]


def called(messages: Messages) -> list[list[Any]]:
    parts = [part for message in messages.output for part in message.parts]
    return [[part.name, part.arguments] for part in parts if isinstance(part, ToolCall)]


def given(messages: Messages) -> list[str]:
    """All texts that the model was given, without results of tools."""
    parts = [*messages.system, *(part for message in messages.input for part in message.parts)]
    return sorted(part.content for part in parts if isinstance(part, Text | Reasoning))


def offered(messages: Messages) -> list[str]:
    return [tool.name for tool in messages.tools]


TEXT = ("text", "content", "prompt", "inputText", "message", "input", "instructions", "system")
HOLD_TEXT = (*TEXT, "messages", "contents", "parts", "systemInstruction")
"""Fields of requests that are texts, or hold them."""
NO_TEXT = ("tool_result", "tool_use", "function_call", "function_call_output")


def texts_in(value: Any, name: str = "") -> Iterator[str]:
    """The same by a plain reading of the request."""
    if isinstance(value, str):
        if value and name in TEXT:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item, name)
    elif isinstance(value, dict) and value.get("role") != "tool" and value.get("type") not in NO_TEXT:
        for field, item in value.items():
            if field in HOLD_TEXT:
                yield from texts_in(item, field)


def tools_in(body: Any) -> list[str]:
    tools = body.get("tools") or (body.get("toolConfig") or {}).get("tools") or []
    found: list[str] = []
    for tool in tools:
        inner = tool.get("function") or tool.get("toolSpec") or tool
        found += [one["name"] for one in tool.get("functionDeclarations", [inner])]
    return found


def the_same_elsewhere(home: Home, calls: list[Call], asked: list[Interaction]) -> None:
    """Sent by httpx alone, to a host that nobody knows, the requests mean the same."""
    elsewhere, _ = recorded_calls(home, "httpx_calls.py", asked)
    for call, other, one in zip(calls, elsewhere, asked, strict=True):
        assert other.attributes[a.SERVER_ADDRESS] == "gateway.example"
        assert call.meaning == other.meaning, f"{one.provider} {one.name} {one.url}"


def install(folder: Path, sdk: Sdk) -> list[Path]:
    """A folder with what an SDK needs beside what is there."""
    if not sdk.needs:
        return []
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--target"]
    subprocess.run([*pip, str(folder), *sdk.needs], check=True, capture_output=True)
    return [folder]


def test_what_an_sdk_understood(tmp_path: Path):
    home, asked = Home(tmp_path, {}), SDKS["boto3"].asked(all_there_are=False)
    calls, said = recorded_calls(home, SDKS["boto3"].program, asked)
    check(calls, asked, [json.loads(line) for line in said.splitlines()])


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sdk", SDKS)
def test_all_recorded_traffic(tmp_path: Path, sdk: str):
    home, asked = Home(tmp_path, {}), SDKS[sdk].asked(all_there_are=True)
    libraries = install(tmp_path / "libraries", SDKS[sdk])
    calls, said = recorded_calls(home, SDKS[sdk].program, asked, *libraries)
    check(calls, asked, [json.loads(line) for line in said.splitlines()])
    the_same_elsewhere(home, calls, asked)
    print(f"{sdk}: {len(calls)} of {len(asked)} exchanges")
