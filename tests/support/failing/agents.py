"""A tiny agent over an SDK: a scripted model that calls plain functions, and how it is recorded."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx
import openai
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from support.servers.scripted import (
    Reply,
    ScriptedServer,
    anthropic_messages,
    anthropic_sse,
    chat_sse,
    json_reply,
    openai_chat,
    openai_responses,
    responses_sse,
)
from support.tapes.recorded_calls import global_provider, recorded_calls

from playhead_instrumentation.recorder.exceptions import record_of
from playhead_instrumentation.session import session
from playhead_replay import Run

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
ANY: dict[str, Any] = {"type": "object", "properties": {}}
Call = tuple[str, Any]
"""Name and arguments of a tool call; arguments that are a text need not be JSON."""
Answer = str | Reply | Sequence[Call]


@dataclass
class Agent:
    """An agent whose model gives the answers that `work` is told."""

    server: ScriptedServer
    sdk: str = "chat"
    """``chat``, ``responses`` or ``messages``; with ``-stream`` or ``-async`` after it."""
    handled: str = "text"
    """How an exception of a tool becomes its result: ``text``, ``json``, ``flag``; ``raise``: not."""
    schemas: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of each request."""
    retries: int = 0
    timeout_s: float = 20.0

    def __post_init__(self) -> None:
        self.wire, _, self.form = self.sdk.partition("-")
        self._ids = itertools.count(1)

    def reply(self, text: str = "", calls: Sequence[Call] = (), finish: str = "") -> Reply:
        """An answer of the model, in the form of its provider."""
        made = [(f"call_{next(self._ids)}", name, arguments) for name, arguments in calls]
        if self.wire == "chat":
            tools = [openai_chat.tool_call(*one) for one in made]
            whole = openai_chat.completion(text or None, tool_calls=tools, finish_reason=finish or None)
            return chat_sse(whole) if self.form == "stream" else json_reply(whole)
        if self.wire == "responses":
            items = [openai_responses.function_call(*one, id=f"fc_{one[0]}") for one in made]
            said = [openai_responses.message(text)] if text or not items else []
            whole = openai_responses.response([*said, *items], status=finish or "completed")
            return responses_sse(whole) if self.form == "stream" else json_reply(whole)
        blocks = [anthropic_messages.text(text)] if text else []
        blocks += [anthropic_messages.tool_use(*one) for one in made]
        whole = anthropic_messages.message(blocks, stop_reason=finish or None)
        return anthropic_sse(whole) if self.form == "stream" else json_reply(whole)

    def work(self, *answers: Answer, question: str = "Where is my order?", **tools: Any) -> str:
        """Run until the model calls no tool. ``tools``: functions, or results of functions."""
        made = [
            one
            if isinstance(one, Reply)
            else self.reply(*((one,) if isinstance(one, str) else ("", one)))
            for one in answers
        ]
        self.server.on(PATHS[self.wire], *made)
        self._offered = list(self.schemas or tools)
        history: list[Any] = [{"role": "user", "content": question}]
        while True:
            text, calls = self.ask(history)
            if not calls:
                return text
            results = [(id, *self._result(tools, name, arguments)) for id, name, arguments in calls]
            self._give(history, results)

    def ask(self, history: list[Any]) -> tuple[str, list[tuple[str, str, Any]]]:
        """Ask the model, and add its answer to the conversation."""
        read = {"chat": self._chat, "responses": self._responses, "messages": self._messages}
        return read[self.wire](history)

    def _request(self, client: Any, call: str, **fields: Any) -> Any:
        """Make the call in the form of this agent: plain, streamed or asynchronous."""
        api: Any = client
        for name in call.split("."):
            api = getattr(api, name)
        if self.form == "async":

            async def made() -> Any:
                async with client:
                    return await api.create(**fields, **self.options)

            return asyncio.run(made())
        if self.form == "stream":
            with api.stream(**fields, **self.options) as stream:
                end = "completion" if "chat" in call else call.removesuffix("s")
                return getattr(stream, f"get_final_{end}")()
        return api.create(**fields, **self.options)

    def _client(self, kind: Any) -> Any:
        is_ours = kind is anthropic
        name = "Anthropic" if is_ours else "OpenAI"
        make = getattr(kind, f"Async{name}" if self.form == "async" else name)
        url = self.server.url if is_ours else self.server.openai_url
        return make(base_url=url, api_key="k", max_retries=self.retries, timeout=self.timeout_s)

    def _chat(self, history: list[Any]) -> tuple[str, list[tuple[str, str, Any]]]:
        tools = [
            {"type": "function", "function": {"name": name, "parameters": self._schema(name)}}
            for name in self._offered
        ]
        offered = {"tools": tools} if tools else {}
        said = self._request(
            self._client(openai), "chat.completions", model="gpt-4o", messages=history, **offered
        )
        message = said.choices[0].message
        history.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        calls = [(one.id, one.function.name, one.function.arguments) for one in message.tool_calls or ()]
        return message.content or "", calls

    def _responses(self, history: list[Any]) -> tuple[str, list[tuple[str, str, Any]]]:
        tools = [
            {"type": "function", "name": name, "parameters": self._schema(name), "strict": False}
            for name in self._offered
        ]
        offered = {"tools": tools} if tools else {}
        said = self._request(self._client(openai), "responses", model="gpt-4o", input=history, **offered)
        history += [one.to_dict() for one in said.output]
        calls = [one for one in said.output if one.type == "function_call"]
        return said.output_text, [(one.call_id, one.name, one.arguments) for one in calls]

    def _messages(self, history: list[Any]) -> tuple[str, list[tuple[str, str, Any]]]:
        tools = [{"name": name, "input_schema": self._schema(name)} for name in self._offered]
        offered = {"tools": tools} if tools else {}
        model: dict[str, Any] = {"model": "claude-sonnet-5"}
        if "max_tokens" not in self.options:
            model["max_tokens"] = 1000
        said = self._request(self._client(anthropic), "messages", messages=history, **model, **offered)
        history.append({"role": "assistant", "content": [one.to_dict() for one in said.content]})
        calls = [one for one in said.content if one.type == "tool_use"]
        text = "".join(one.text for one in said.content if one.type == "text")
        return text, [(one.id, one.name, one.input) for one in calls]

    def _schema(self, name: str) -> Any:
        return self.schemas.get(name, ANY)

    def _result(self, tools: Mapping[str, Any], name: str, arguments: Any) -> tuple[Any, bool]:
        """Call the tool; return its result and whether it failed."""
        if name not in tools:
            return f"Error: unknown tool {name}", True
        if not callable(tools[name]):
            return tools[name], False
        try:
            if isinstance(arguments, str):
                arguments = json.loads(arguments or "{}")
            return tools[name](**arguments), False
        except Exception as error:
            if self.handled == "raise":
                raise
            said = f"{type(error).__name__}: {error}"
            return {
                "text": f"Error: {said}",
                "json": {"error": said},
                "flag": str(error),
            }[self.handled], True

    def _give(self, history: list[Any], results: Sequence[tuple[str, Any, bool]]) -> None:
        blocks: list[Any] = []
        for id, value, failed in results:
            text = value if isinstance(value, str) else json.dumps(value)
            if self.wire == "chat":
                history.append({"role": "tool", "tool_call_id": id, "content": text})
            elif self.wire == "responses":
                history.append({"type": "function_call_output", "call_id": id, "output": text})
            else:
                flag = {"is_error": True} if failed and self.handled == "flag" else {}
                blocks.append({"type": "tool_result", "tool_use_id": id, "content": text, **flag})
        if blocks:
            history.append({"role": "user", "content": blocks})


Program = Callable[[ScriptedServer], object]


@contextmanager
def _ended(recording: Any) -> Any:
    """Write how the program ends as its process would."""
    try:
        yield
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        session.stop(code, record_of(SystemExit(str(end.code)), str) if code else None)
    except Exception as error:
        session.stop(1, record_of(error, str))


def run_of(program: Program) -> Run:
    """Record a program with a server of its own, and return its run."""
    with ScriptedServer() as server, recorded_calls(quiet=True) as recording:
        with _ended(recording):
            with global_provider().get_tracer("agent").start_as_current_span("run"):
                program(server)
        spans = recording.spans()
        server.unscripted.clear()
    encoded = [encode_spans([one]).resource_spans[0].SerializeToString() for one in spans]
    return Run.of_tape(recording.sink.tape, encoded)


def get(url: str, **options: Any) -> Any:
    """A request of a tool, as most programs make it."""
    answer = httpx.get(url, **{"timeout": 20.0, **options})
    answer.raise_for_status()
    return answer.json()
