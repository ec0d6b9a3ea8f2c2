"""The messages of xAI's chat, as far as they are read: numbers, names and types of their fields.

Source: the public definition of the API, https://github.com/xai-org/xai-proto,
``proto/xai/api/v1/chat.proto``, ``usage.proto``, ``sample.proto`` and ``image.proto``.
"""

from __future__ import annotations

from typing import Final

from playhead_semconv.wire.xai.protobuf import Field, Schema

ROLES: Final = {
    1: "user",
    2: "assistant",
    3: "system",
    4: "function",
    5: "tool",
    6: "developer",
}
EFFORTS: Final = {1: "low", 2: "medium", 3: "high", 4: "none"}
FORMATS: Final = {1: "text", 2: "json_object", 3: "json_schema"}
DETAILS: Final = {1: "auto", 2: "low", 3: "high"}
REASONS: Final = {1: "length", 2: "length", 3: "stop", 4: "tool_calls", 5: "error"}
"""Why a choice ended, in the words of OpenAI's chat."""
SERVERS_TOOLS: Final = {
    1: "function",
    2: "web_search",
    3: "x_search",
    4: "code_execution",
    5: "collections_search",
    6: "mcp",
    7: "attachment_search",
}

FUNCTION_CALL: Final = Schema({1: Field("name"), 2: Field("arguments")})
TOOL_CALL: Final = Schema(
    {
        1: Field("id"),
        2: Field("type", SERVERS_TOOLS),
        4: Field("error_message"),
        10: Field("function", FUNCTION_CALL),
    }
)
IMAGE: Final = Schema({1: Field("image_url"), 2: Field("detail", DETAILS)})
FILE: Final = Schema(
    {
        1: Field("file_id"),
        2: Field("data", "bytes"),
        3: Field("filename"),
        4: Field("mime_type"),
        5: Field("url"),
    }
)
CONTENT: Final = Schema({1: Field("text"), 2: Field("image_url", IMAGE), 3: Field("file", FILE)})
MESSAGE: Final = Schema(
    {
        1: Field("content", CONTENT, many=True),
        2: Field("role", ROLES),
        3: Field("name"),
        4: Field("tool_calls", TOOL_CALL, many=True),
        5: Field("reasoning_content"),
        6: Field("encrypted_content"),
        7: Field("tool_call_id"),
    }
)
FUNCTION: Final = Schema(
    {1: Field("name"), 2: Field("description"), 3: Field("strict", "bool"), 4: Field("parameters")}
)
_DOMAINS = {1: Field("excluded_domains", many=True), 2: Field("allowed_domains", many=True)}
MCP: Final = Schema(
    {
        1: Field("server_label"),
        2: Field("server_description"),
        3: Field("server_url"),
        4: Field("allowed_tool_names", many=True),
    }
)
TOOL: Final = Schema(
    {
        1: Field("function", FUNCTION),
        3: Field("web_search", Schema(_DOMAINS)),
        4: Field("x_search", Schema({})),
        5: Field("code_execution", Schema({})),
        6: Field("collections_search", Schema({1: Field("collection_ids", many=True)})),
        7: Field("mcp", MCP),
        8: Field("attachment_search", Schema({})),
    }
)
FORMAT: Final = Schema({1: Field("format_type", FORMATS), 2: Field("schema")})
REQUEST: Final = Schema(
    {
        1: Field("messages", MESSAGE, many=True),
        2: Field("model"),
        3: Field("frequency_penalty", "float"),
        7: Field("max_tokens", "int"),
        8: Field("n", "int"),
        9: Field("presence_penalty", "float"),
        10: Field("response_format", FORMAT),
        11: Field("seed", "int"),
        12: Field("stop", many=True),
        14: Field("temperature", "float"),
        15: Field("top_p", "float"),
        16: Field("user"),
        17: Field("tools", TOOL, many=True),
        19: Field("reasoning_effort", EFFORTS),
        22: Field("previous_response_id"),
    }
)

USAGE: Final = Schema(
    {
        1: Field("completion_tokens", "int"),
        2: Field("prompt_tokens", "int"),
        3: Field("total_tokens", "int"),
        4: Field("prompt_text_tokens", "int"),
        5: Field("prompt_image_tokens", "int"),
        6: Field("reasoning_tokens", "int"),
        7: Field("cached_prompt_text_tokens", "int"),
    }
)
SPOKEN: Final = Schema(
    {
        1: Field("content"),
        2: Field("role", ROLES),
        3: Field("tool_calls", TOOL_CALL, many=True),
        4: Field("reasoning_content"),
        5: Field("encrypted_content"),
    }
)
"""A whole message of an answer, or what is added to it."""
OUTPUT: Final = Schema(
    {1: Field("finish_reason", REASONS), 2: Field("index", "int"), 3: Field("message", SPOKEN)}
)
OUTPUT_CHUNK: Final = Schema(
    {1: Field("delta", SPOKEN), 3: Field("finish_reason", REASONS), 4: Field("index", "int")}
)
RESPONSE: Final = Schema(
    {
        1: Field("id"),
        2: Field("outputs", OUTPUT, many=True),
        6: Field("model"),
        7: Field("system_fingerprint"),
        9: Field("usage", USAGE),
        10: Field("citations", many=True),
    }
)
CHUNK: Final = Schema(
    {
        1: Field("id"),
        2: Field("outputs", OUTPUT_CHUNK, many=True),
        4: Field("model"),
        5: Field("system_fingerprint"),
        6: Field("usage", USAGE),
        7: Field("citations", many=True),
    }
)
