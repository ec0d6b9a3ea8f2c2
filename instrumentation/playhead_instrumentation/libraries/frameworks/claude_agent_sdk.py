"""Hook of the Claude Agent SDK: spans of agents, model calls and tools, from the messages of its CLI.

The agent runs in a program of its own, whose requests to the model this process never sees. The SDK
talks to it with JSON lines: prompts go in; answers of the model, results of tools and the result of the
turn come out. A span of an agent lasts from a prompt to the result. Answers arrive in pieces with one
id. A subagent's messages name the tool call that started it.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import ModuleType
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from opentelemetry import context as otel_context

from playhead_genai.providers import derive
from playhead_genai.providers.derive import CONTENT_ATTRIBUTES, WireResponse
from playhead_instrumentation.libraries.frameworks.operation_span import (
    UNKNOWN_ERROR,
    OperationSpan,
    never_raises,
    tool_attributes,
)
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiProviderName

NAME: Final = "claude-agent-sdk"
AGENT: Final = "claude"
WIRE: Final = "anthropic.messages"
"""The form of the messages that the CLI passes on."""

Json = Mapping[str, Any]


def hook(_: ModuleType) -> None:
    """Install the hook: `claude_agent_sdk` has been imported."""
    module = "claude_agent_sdk._internal.transport.subprocess_cli"
    PATCHES.when_imported(module, NAME, _patch)
    PATCHES.when_imported("claude_agent_sdk._internal.query", NAME, _patch_requests)


def _patch_requests(module: ModuleType) -> None:
    PATCHES.around(required(module, "Query"), "_handle_control_request", _handle_request)


def _patch(module: ModuleType) -> None:
    transport = required(module, "SubprocessCLITransport")
    PATCHES.around(transport, "write", _write)
    PATCHES.around(transport, "read_messages", _read_messages)


_turns: Final[WeakKeyDictionary[Any, Turns]] = WeakKeyDictionary()
"""What is known of each connection to a CLI."""


def _of(transport: Any) -> Turns:
    return _turns.setdefault(transport, Turns())


async def _write(original: Any, transport: Any, data: str) -> None:
    turns = _of(transport)
    turns.sent(data)
    try:
        await original(transport, data)
    except BaseException as error:
        turns.closed(error)
        raise


async def _handle_request(original: Any, query: Any, request: Json) -> None:
    """The CLI calls a tool, hook or callback of the program: what that calls is inside of the turn."""
    operation = _of(query.transport).caller(request)
    if operation is None:
        return await original(query, request)
    token = otel_context.attach(operation.context())
    try:
        await original(query, request)
    finally:
        otel_context.detach(token)


def _read_messages(original: Any, transport: Any) -> AsyncIterator[Json]:
    return _observed(original(transport), _of(transport))


async def _observed(messages: AsyncGenerator[Json, None], turns: Turns) -> AsyncGenerator[Json, None]:
    error: BaseException | None = None
    try:
        async for message in messages:
            turns.received(message)
            yield message
    except BaseException as problem:
        error = problem
        raise
    finally:
        turns.closed(error)
        await messages.aclose()


class _Answer:
    """An answer of the model, which arrives in pieces."""

    def __init__(self, around: OperationSpan | None, first: Json, inputs: list[Json], began_ns: int):
        self.around: Final = around
        self.began_ns: Final = began_ns
        self.inputs: Final = inputs
        self.message: Json = first
        self.blocks: Final[list[Any]] = []
        self.ended_ns = began_ns

    def add(self, piece: Json) -> None:
        self.message = piece
        self.blocks.extend(piece.get("content") or ())
        self.ended_ns = time.time_ns()

    def record(self) -> None:
        """Make the span of the call, now that the answer is complete."""
        model = str(self.message.get("model", ""))
        request = {"model": model, "messages": self.inputs}
        body = {"type": "message", **self.message, "content": self.blocks}
        response = WireResponse(200, _JSON, [json.dumps(body).encode()], complete=True)
        found = derive(WIRE, json.dumps(request).encode(), response).attributes
        content = {name: found.pop(name) for name in CONTENT_ATTRIBUTES if name in found}
        attributes = {
            a.GEN_AI_PROVIDER_NAME: GenAiProviderName.ANTHROPIC,
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
            **found,
        }
        operation = OperationSpan.begin(
            f"{GenAiOperationName.CHAT} {model}", attributes, self.around, self.began_ns
        )
        if operation is not None:
            operation.set_content(content)
            operation.end(ended_ns=self.ended_ns)


_JSON: Final = (("content-type", "application/json"),)


class Turns:
    """The turns of one connection, one after the other. Its methods never raise."""

    def __init__(self) -> None:
        self._agent: OperationSpan | None = None
        self._answers: Final[dict[str, _Answer]] = {}
        """The incomplete answer of the agent, and of each subagent, by the tool call that started it."""
        self._tools: Final[dict[str, tuple[OperationSpan, Any]]] = {}
        """Tools that run and their arguments, by the id of the call."""
        self._inputs: Final[dict[str, list[Json]]] = {}
        """What is sent to the model with the next request, by agent as above."""
        self._since: Final[dict[str, int]] = {}
        """When the next request is sent, by agent as above."""

    @never_raises
    def sent(self, data: str) -> None:
        """The program sends lines to the CLI."""
        for line in data.splitlines():
            message = json.loads(line)
            if message.get("type") == "user":
                if self._agent is None:
                    self._begin()
                self._input("", message["message"])

    @never_raises
    def received(self, message: Json) -> None:
        """The CLI has sent a message."""
        kind = message.get("type")
        agent = str(message.get("parent_tool_use_id") or "")
        if kind == "system" and message.get("subtype") == "init" and self._agent is not None:
            self._agent.set({a.GEN_AI_CONVERSATION_ID: str(message.get("session_id", ""))})
        elif kind == "assistant":
            self._answered(agent, message["message"])
        elif kind == "user":
            self._complete(agent)
            for block in _blocks(message["message"]):
                if block.get("type") == "tool_result":
                    self._end_tool(block)
            self._input(agent, message["message"])
        elif kind == "result":
            self._end(message)

    def caller(self, request: Json) -> OperationSpan | None:
        """Return the operation that a request of the CLI is in: a tool of the program, or the agent.

        The CLI names tools of the program after their server.
        """
        asked = _object(request.get("request"))
        called = _object(_object(asked.get("message")).get("params"))
        name = f"mcp__{asked.get('server_name')}__{called.get('name')}"
        for operation, arguments in self._tools.values():
            if operation.tool == name and arguments == called.get("arguments"):
                return operation
        return self._agent

    @never_raises
    def closed(self, error: BaseException | None) -> None:
        """The connection is over."""
        self._end_all(error)

    def _begin(self) -> None:
        self._agent = OperationSpan.begin(
            f"{GenAiOperationName.INVOKE_AGENT} {AGENT}",
            {
                a.GEN_AI_OPERATION_NAME: GenAiOperationName.INVOKE_AGENT,
                a.GEN_AI_AGENT_NAME: AGENT,
                a.GEN_AI_PROVIDER_NAME: GenAiProviderName.ANTHROPIC,
                a.PLAYHEAD_FRAMEWORK_NAME: NAME,
            },
        )

    def _input(self, agent: str, message: Json) -> None:
        self._inputs.setdefault(agent, []).append(message)
        self._since[agent] = time.time_ns()

    def _around(self, agent: str) -> OperationSpan | None:
        return self._tools[agent][0] if agent in self._tools else self._agent

    def _answered(self, agent: str, piece: Json) -> None:
        answer = self._answers.get(agent)
        if answer is None or answer.message.get("id") != piece.get("id"):
            self._complete(agent)
            began_ns = self._since.get(agent) or time.time_ns()
            answer = _Answer(self._around(agent), piece, self._inputs.pop(agent, []), began_ns)
            self._answers[agent] = answer
        answer.add(piece)
        for block in _blocks(piece):
            if block.get("type") == "tool_use":
                self._begin_tool(agent, block)

    def _complete(self, agent: str) -> None:
        answer = self._answers.pop(agent, None)
        if answer is not None:
            answer.record()
            self._since[agent] = time.time_ns()

    def _begin_tool(self, agent: str, block: Json) -> None:
        name = str(block.get("name", ""))
        call = str(block.get("id", ""))
        attributes = {**tool_attributes(NAME, name), a.GEN_AI_TOOL_CALL_ID: call}
        operation = OperationSpan.begin(
            f"{GenAiOperationName.EXECUTE_TOOL} {name}", attributes, self._around(agent)
        )
        if operation is not None:
            operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: block.get("input")})
            self._tools[call] = operation, block.get("input")

    def _end_tool(self, block: Json) -> None:
        call = str(block.get("tool_use_id", ""))
        self._complete(call)  # a subagent has ended with it
        if call not in self._tools:
            return
        operation, _ = self._tools.pop(call)
        result = block.get("content")
        texts = [one.get("text") for one in _blocks(block) if one.get("type") == "text"]
        if isinstance(result, list) and len(texts) == len(cast("list[Any]", result)) == 1:
            result = texts[0]
        operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: result})
        if block.get("is_error"):
            operation.fail(UNKNOWN_ERROR, result if isinstance(result, str) else "")
        operation.end()

    def _end(self, result: Json) -> None:
        """The turn is over."""
        if self._agent is not None:
            self._agent.set({a.GEN_AI_CONVERSATION_ID: str(result.get("session_id", ""))})
            if result.get("is_error"):
                self._agent.fail(
                    str(result.get("subtype") or UNKNOWN_ERROR), str(result.get("result") or "")
                )
        self._end_all(None)

    def _end_all(self, error: BaseException | None) -> None:
        for agent in list(self._answers):
            self._complete(agent)
        while self._tools:
            self._tools.popitem()[1][0].end(error)
        agent, self._agent = self._agent, None
        self._inputs.clear()
        self._since.clear()
        if agent is not None:
            agent.end(error)


def _object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _blocks(message: Json) -> list[Json]:
    """Return the blocks of a message's content; a text has none."""
    content = message.get("content")
    return (
        [one for one in cast("list[Any]", content) if isinstance(one, dict)]
        if isinstance(content, list)
        else []
    )
