"""A conversation with a tool, as the exports of several tools hold it: two model calls around a tool."""

import json
from typing import Any

TRACE = "0af7651916cd43dd8448eb211c80319c"
ROOT, FIRST, TOOL, SECOND = (f"{number:016x}" for number in (0xA0, 1, 2, 3))
START_S = 1_700_000_000
ARGUMENTS = '{"city":"Oslo"}'
SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "Weather in Oslo?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
DONE = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
SAID = {"role": "assistant", "content": "It rains."}
SENT = [[SYSTEM, ASKED], [SYSTEM, ASKED, CALLED, DONE]]
RECEIVED = [CALLED, SAID]
DEFINITION = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
MODEL = "gpt-4o"


def at(second: int) -> str:
    return f"2023-11-14T22:13:{20 + second:02}.000Z"


def ns(second: int) -> int:
    return (START_S + second) * 10**9


def langfuse() -> Any:
    def observation(id: str, kind: str, name: str, second: int, **more: Any) -> dict[str, Any]:
        return {
            "id": id,
            "traceId": TRACE,
            "type": kind,
            "name": name,
            "startTime": at(second),
            "endTime": at(second + 1),
            "parentObservationId": ROOT,
            "level": "DEFAULT",
            "statusMessage": None,
            **more,
        }

    calls = [
        observation(
            id,
            "GENERATION",
            "ask",
            second,
            model=MODEL,
            input={"messages": sent, "tools": [DEFINITION]},
            output=received,
            usageDetails={"input": 20, "output": 3, "total": 23},
        )
        for id, second, sent, received in ((FIRST, 1, SENT[0], CALLED), (SECOND, 5, SENT[1], SAID))
    ]
    root = observation(ROOT, "SPAN", "trip", 0, endTime=at(9), parentObservationId=None)
    failed = {"level": "ERROR", "statusMessage": "wet"}
    tool = observation(TOOL, "TOOL", "weather", 3, input={"city": "Oslo"}, output="rain", **failed)
    trace = {"id": TRACE, "timestamp": at(0), "name": "trip", "sessionId": "s1", "projectId": "p"}
    return {**trace, "tags": ["a"], "observations": [root, *calls, tool, "an-id-alone"]}


def langsmith() -> list[Any]:
    def lang_chain(message: dict[str, Any]) -> dict[str, Any]:
        name = {"system": "SystemMessage", "user": "HumanMessage", "tool": "ToolMessage"}
        fields = {"content": message["content"] or "", "tool_call_id": message.get("tool_call_id")}
        if message.get("tool_calls"):
            fields["tool_calls"] = [{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}]
        path = ["langchain", "schema", "messages", name.get(message["role"], "AIMessage")]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}

    def run(id: str, kind: str, name: str, second: int, end: int, **more: Any) -> dict[str, Any]:
        return {
            "id": f"00000000-0000-0000-0000-00000000{id[-4:]}",
            "trace_id": TRACE,
            "parent_run_id": f"00000000-0000-0000-0000-00000000{ROOT[-4:]}",
            "run_type": kind,
            "name": name,
            "start_time": at(second)[:-1],
            "end_time": at(end)[:-1],
            "error": None,
            **more,
        }

    calls = [
        run(
            id,
            "llm",
            "ChatOpenAI",
            second,
            second + 1,
            inputs={"messages": [[lang_chain(one) for one in sent]]},
            outputs={
                "generations": [[{"text": "", "message": lang_chain(received)}]],
                "llm_output": {"token_usage": {"prompt_tokens": 20, "completion_tokens": 3}},
            },
            extra={
                "metadata": {"ls_model_name": MODEL, "ls_provider": "openai", "thread_id": "s1"},
                "invocation_params": {"tools": [DEFINITION]},
            },
        )
        for id, second, sent, received in ((FIRST, 1, SENT[0], CALLED), (SECOND, 5, SENT[1], SAID))
    ]
    root = run(ROOT, "chain", "trip", 0, 9, inputs={"q": 1}, outputs={}, parent_run_id=None)
    tool = run(
        TOOL,
        "tool",
        "weather",
        3,
        4,
        inputs={"input": ARGUMENTS},
        outputs={"output": "rain"},
        error="wet",
    )
    return [root, *calls, tool, {"not": "a run"}]


def _open_inference(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "message.role": one["role"],
            "message.content": one["content"],
            "message.tool_call_id": one.get("tool_call_id"),
            "message.tool_calls": [
                {"tool_call.function.name": "weather", "tool_call.function.arguments": ARGUMENTS}
                for _ in one.get("tool_calls", [])
            ],
        }
        for one in messages
    ]


def phoenix() -> Any:
    def span(id: str, kind: str, name: str, second: int, end: int, attributes: Any) -> dict[str, Any]:
        return {
            "name": name,
            "context": {"trace_id": TRACE, "span_id": id},
            "parent_id": None if id == ROOT else ROOT,
            "span_kind": kind,
            "start_time": at(second),
            "end_time": at(end),
            "status_code": "ERROR" if kind == "TOOL" else "OK",
            "status_message": "wet" if kind == "TOOL" else "",
            "attributes": attributes,
            "events": [{"name": "note", "timestamp": at(second), "attributes": {"a": 1}}],
        }

    calls = [
        span(
            id,
            "LLM",
            "ChatCompletion",
            second,
            second + 1,
            {
                "llm": {
                    "model_name": MODEL,
                    "input_messages": _open_inference(sent),
                    "output_messages": _open_inference([received]),
                    "token_count": {"prompt": 20, "completion": 3},
                }
            },
        )
        for id, second, sent, received in ((FIRST, 1, SENT[0], CALLED), (SECOND, 5, SENT[1], SAID))
    ]
    tool = {"tool.name": "weather", "input.value": ARGUMENTS, "output.value": "rain"}
    root = span(ROOT, "CHAIN", "trip", 0, 9, {"session": {"id": "s1"}})
    spans = [root, *calls, span(TOOL, "TOOL", "weather", 3, 4, tool)]
    return {"data": [*spans, {"name": "no span"}], "next_cursor": None}


def phoenix_frame() -> Any:
    """The same as a data frame: a column for each attribute, with the span ids as rows."""
    columns: dict[str, dict[str, Any]] = {}
    for span in phoenix()["data"][:-1]:
        cells = {name: span[name] for name in span if name not in ("context", "attributes")}
        cells["context.trace_id"] = TRACE
        for name, value in span["attributes"].items():
            inner = value if isinstance(value, dict) else {"": value}
            cells |= {f"attributes.{name}.{key}".rstrip("."): one for key, one in inner.items()}
        for name, value in cells.items():
            columns.setdefault(name, {})[span["context"]["span_id"]] = value
    return columns


def mlflow() -> Any:
    def span(
        id: str, kind: str, name: str, second: int, end: int, sent: Any, got: Any, **more: Any
    ) -> Any:
        attributes = {
            "mlflow.spanType": kind,
            "mlflow.spanInputs": sent,
            "mlflow.spanOutputs": got,
            **more,
        }
        return {
            "trace_id": "CvdlGRbNQ92ESOshHIAxnA==",
            "span_id": {ROOT: "AAAAAAAAAKA=", FIRST: "AAAAAAAAAAE=", TOOL: "AAAAAAAAAAI="}.get(
                id, "AAAAAAAAAAM="
            ),
            "parent_span_id": None if id == ROOT else "AAAAAAAAAKA=",
            "name": name,
            "start_time_unix_nano": ns(second),
            "end_time_unix_nano": ns(end),
            "events": [],
            "status": {
                "code": "STATUS_CODE_ERROR" if kind == "TOOL" else "STATUS_CODE_OK",
                "message": "wet" if kind == "TOOL" else "",
            },
            "attributes": {name: json.dumps(value) for name, value in attributes.items()},
        }

    calls = [
        span(
            id,
            "CHAT_MODEL",
            "Completions",
            second,
            second + 1,
            {"model": MODEL, "messages": sent},
            {"choices": [{"index": 0, "message": received, "finish_reason": "stop"}]},
            **{
                "mlflow.chat.tools": [DEFINITION],
                "mlflow.chat.tokenUsage": {"input_tokens": 20, "output_tokens": 3},
            },
        )
        for id, second, sent, received in ((FIRST, 1, SENT[0], CALLED), (SECOND, 5, SENT[1], SAID))
    ]
    info = {
        "trace_id": f"tr-{TRACE}",
        "trace_metadata": {"mlflow.trace.session": "s1"},
        "tags": {"mlflow.traceName": "trip"},
        "state": "OK",
    }
    root = span(ROOT, "CHAIN", "trip", 0, 9, {"q": 1}, None)
    tool = span(TOOL, "TOOL", "weather", 3, 4, {"city": "Oslo"}, "rain")
    return {"info": info, "data": {"spans": [root, *calls, tool]}}


def jaeger() -> Any:
    def span(id: str, name: str, second: int, end: int, **tags: Any) -> Any:
        typed = [
            {"key": one.replace("__", "."), "type": "string", "value": value}
            for one, value in tags.items()
        ]
        link = [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": ROOT}]
        return {
            "traceID": TRACE,
            "spanID": id,
            "operationName": name,
            "references": [] if id == ROOT else link,
            "startTime": ns(second) // 1000,
            "duration": (end - second) * 1_000_000,
            "tags": typed,
            "logs": [{"timestamp": ns(second) // 1000, "fields": [{"key": "event", "value": "note"}]}],
            "processID": "p1",
        }

    calls = [
        span(
            id,
            f"chat {MODEL}",
            second,
            second + 1,
            span__kind="client",
            gen_ai__operation__name="chat",
            gen_ai__request__model=MODEL,
            gen_ai__input__messages=json.dumps(messages(sent)),
            gen_ai__output__messages=json.dumps(messages([received])),
            gen_ai__usage__input_tokens=20,
            gen_ai__usage__output_tokens=3,
        )
        for id, second, sent, received in ((FIRST, 1, SENT[0], CALLED), (SECOND, 5, SENT[1], SAID))
    ]
    failed = {"otel__status_code": "ERROR", "otel__status_description": "wet"}
    named = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "weather"}
    root = span(ROOT, "trip", 0, 9, gen_ai__conversation__id="s1")
    spans = [root, *calls, span(TOOL, "execute_tool weather", 3, 4, **named, **failed)]
    processes = {"p1": {"serviceName": "trip", "tags": []}}
    return {"data": [{"traceID": TRACE, "spans": spans, "processes": processes}]}


def messages(some: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the form of the conventions."""
    found: list[dict[str, Any]] = []
    for one in some:
        parts: list[dict[str, Any]] = [
            {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Oslo"}}
            for _ in one.get("tool_calls", [])
        ]
        if one["role"] == "tool":
            parts = [{"type": "tool_call_response", "id": "c1", "response": one["content"]}]
        elif one["content"]:
            parts = [{"type": "text", "content": one["content"]}]
        found.append({"role": one["role"], "parts": parts})
    return found


def openai() -> Any:
    """Stored completions are runs of their own: one for each call."""
    return {
        "object": "list",
        "has_more": False,
        "data": [
            {
                "object": "chat.completion",
                "id": f"chatcmpl-{second}",
                "model": MODEL,
                "created": START_S + second,
                "choices": [{"index": 0, "message": received, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23},
                "metadata": {"team": "a"},
                "tools": [DEFINITION],
                "messages": sent,
            }
            for second, sent, received in ((1, SENT[0], CALLED), (5, SENT[1], SAID))
        ],
    }


def otlp(unit: dict[str, Any]) -> Any:
    """Jaeger's trace as OTLP JSON."""
    made: list[Any] = []
    for one in unit["data"][0]["spans"]:
        tags = {tag["key"]: tag["value"] for tag in one["tags"]}
        attributes = [
            {"key": key, "value": {"intValue" if isinstance(value, int) else "stringValue": value}}
            for key, value in tags.items()
            if not key.startswith("otel.")
        ]
        start = one["startTime"] * 1000
        status = {"code": 2, "message": "wet"} if "otel.status_code" in tags else {}
        made.append(
            {
                "traceId": TRACE,
                "spanId": one["spanID"],
                "parentSpanId": ROOT if one["references"] else "",
                "name": one["operationName"],
                "startTimeUnixNano": str(start),
                "endTimeUnixNano": str(start + one["duration"] * 1000),
                "attributes": attributes,
                "status": status,
            }
        )
    service = [{"key": "service.name", "value": {"stringValue": "trip"}}]
    return {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"spans": made}]}]}
