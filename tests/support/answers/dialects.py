"""A call to a model in the attributes of other tools, as their packages write them."""

import json
from typing import Any

OPENINFERENCE: dict[str, Any] = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-4o",
    "llm.provider": "openai",
    "llm.token_count.prompt": 812,
    "llm.token_count.prompt_details.cache_read": 500,
    "llm.token_count.completion": 64,
    "session.id": "s-1",
    "llm.input_messages.10.message.role": "tool",
    "llm.input_messages.10.message.tool_call_id": "call_1",
    "llm.input_messages.10.message.content": "rain",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.contents.0.message_content.type": "text",
    "llm.input_messages.0.message.contents.0.message_content.text": "weather?",
    "llm.input_messages.2.message.role": "assistant",
    "llm.input_messages.2.message.tool_calls.0.tool_call.id": "call_1",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "weather",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": '{"at": "Bonn"}',
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "Take an umbrella.",
}
OPENLLMETRY: dict[str, Any] = {
    "llm.request.type": "chat",
    "gen_ai.system": "openai",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.usage.prompt_tokens": 812,
    "gen_ai.usage.cache_read_input_tokens": 500,
    "gen_ai.usage.completion_tokens": 64,
    "traceloop.association.properties.session_id": "s-1",
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "weather?",
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.tool_calls.0.id": "call_1",
    "gen_ai.prompt.2.tool_calls.0.name": "weather",
    "gen_ai.prompt.2.tool_calls.0.arguments": '{"at": "Bonn"}',
    "gen_ai.prompt.3.role": "tool",
    "gen_ai.prompt.3.tool_call_id": "call_1",
    "gen_ai.prompt.3.content": "rain",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "Take an umbrella.",
}

_FUNCTION = {"name": "weather", "arguments": '{"at": "Bonn"}'}
_CALL = {"id": "call_1", "type": "function", "function": _FUNCTION}
_SENT = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
]
_SAID = {"role": "assistant", "content": "Take an umbrella."}
LANGFUSE: dict[str, Any] = {
    "langfuse.observation.type": "generation",
    "langfuse.observation.model.name": "gpt-4o",
    "langfuse.observation.input": json.dumps({"messages": _SENT, "tools": []}),
    "langfuse.observation.output": json.dumps(_SAID),
}
LANGFUSE_RESPONSES: dict[str, Any] = {
    **LANGFUSE,
    "langfuse.observation.input": json.dumps(
        {
            "input": [
                _SENT[0],
                {"type": "function_call", "call_id": "call_1", **_FUNCTION},
                {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
            ]
        }
    ),
    "langfuse.observation.output": json.dumps(
        {
            "id": "msg_1",
            "role": "assistant",
            "type": "message",
            "content": [{"type": "output_text", "text": "Take an umbrella.", "annotations": []}],
        }
    ),
}
LANGSMITH: dict[str, Any] = {
    "langsmith.span.kind": "llm",
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.prompt": json.dumps({"messages": _SENT, "model": "gpt-4o"}),
    "gen_ai.completion": json.dumps({"choices": [{"finish_reason": "stop", "message": _SAID}]}),
}
VERCEL: dict[str, Any] = {
    "ai.operationId": "ai.streamText.doStream",
    "ai.model.id": "gpt-4o",
    "ai.prompt.messages": json.dumps(
        [
            {"role": "user", "content": [{"type": "text", "text": "weather?"}]},
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool-call",
                        "toolCallId": "call_1",
                        "toolName": "weather",
                        "input": {"at": "Bonn"},
                    }
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "call_1",
                        "toolName": "weather",
                        "output": {"type": "text", "value": "rain"},
                    }
                ],
            },
        ]
    ),
    "ai.response.text": "Take an umbrella.",
}
