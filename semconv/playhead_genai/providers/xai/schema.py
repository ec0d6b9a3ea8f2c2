"""The messages of xAI's chat and images, as far as they are read: numbers, names, types of their fields.

Source: the public definition of the API, https://github.com/xai-org/xai-proto, ``proto/xai/api/v1``:
``chat.proto``, ``usage.proto``, ``sample.proto``, ``deferred.proto`` and ``image.proto``.
"""

from __future__ import annotations

from typing import Final

from playhead_genai.providers.xai.protobuf import ProtoField, Schema

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

FUNCTION_CALL: Final = Schema({1: ProtoField("name"), 2: ProtoField("arguments")})
TOOL_CALL: Final = Schema(
    {
        1: ProtoField("id"),
        2: ProtoField("type", SERVERS_TOOLS),
        4: ProtoField("error_message"),
        10: ProtoField("function", FUNCTION_CALL),
    }
)
IMAGE: Final = Schema({1: ProtoField("image_url"), 2: ProtoField("detail", DETAILS)})
FILE: Final = Schema(
    {
        1: ProtoField("file_id"),
        2: ProtoField("data", "bytes"),
        3: ProtoField("filename"),
        4: ProtoField("mime_type"),
        5: ProtoField("url"),
    }
)
CONTENT: Final = Schema(
    {1: ProtoField("text"), 2: ProtoField("image_url", IMAGE), 3: ProtoField("file", FILE)}
)
MESSAGE: Final = Schema(
    {
        1: ProtoField("content", CONTENT, many=True),
        2: ProtoField("role", ROLES),
        3: ProtoField("name"),
        4: ProtoField("tool_calls", TOOL_CALL, many=True),
        5: ProtoField("reasoning_content"),
        6: ProtoField("encrypted_content"),
        7: ProtoField("tool_call_id"),
    }
)
FUNCTION: Final = Schema(
    {
        1: ProtoField("name"),
        2: ProtoField("description"),
        3: ProtoField("strict", "bool"),
        4: ProtoField("parameters"),
    }
)
_DOMAINS = {1: ProtoField("excluded_domains", many=True), 2: ProtoField("allowed_domains", many=True)}
MCP: Final = Schema(
    {
        1: ProtoField("server_label"),
        2: ProtoField("server_description"),
        3: ProtoField("server_url"),
        4: ProtoField("allowed_tool_names", many=True),
    }
)
TOOL: Final = Schema(
    {
        1: ProtoField("function", FUNCTION),
        3: ProtoField("web_search", Schema(_DOMAINS)),
        4: ProtoField("x_search", Schema({})),
        5: ProtoField("code_execution", Schema({})),
        6: ProtoField("collections_search", Schema({1: ProtoField("collection_ids", many=True)})),
        7: ProtoField("mcp", MCP),
        8: ProtoField("attachment_search", Schema({})),
    }
)
FORMAT: Final = Schema({1: ProtoField("format_type", FORMATS), 2: ProtoField("schema")})
REQUEST: Final = Schema(
    {
        1: ProtoField("messages", MESSAGE, many=True),
        2: ProtoField("model"),
        3: ProtoField("frequency_penalty", "float"),
        7: ProtoField("max_tokens", "int"),
        8: ProtoField("n", "int"),
        9: ProtoField("presence_penalty", "float"),
        10: ProtoField("response_format", FORMAT),
        11: ProtoField("seed", "int"),
        12: ProtoField("stop", many=True),
        14: ProtoField("temperature", "float"),
        15: ProtoField("top_p", "float"),
        16: ProtoField("user"),
        17: ProtoField("tools", TOOL, many=True),
        19: ProtoField("reasoning_effort", EFFORTS),
        22: ProtoField("previous_response_id"),
    }
)

USAGE: Final = Schema(
    {
        1: ProtoField("completion_tokens", "int"),
        2: ProtoField("prompt_tokens", "int"),
        3: ProtoField("total_tokens", "int"),
        4: ProtoField("prompt_text_tokens", "int"),
        5: ProtoField("prompt_image_tokens", "int"),
        6: ProtoField("reasoning_tokens", "int"),
        7: ProtoField("cached_prompt_text_tokens", "int"),
    }
)
SPOKEN: Final = Schema(
    {
        1: ProtoField("content"),
        2: ProtoField("role", ROLES),
        3: ProtoField("tool_calls", TOOL_CALL, many=True),
        4: ProtoField("reasoning_content"),
        5: ProtoField("encrypted_content"),
    }
)
"""A whole message of an answer, or what is added to it."""
OUTPUT: Final = Schema(
    {
        1: ProtoField("finish_reason", REASONS),
        2: ProtoField("index", "int"),
        3: ProtoField("message", SPOKEN),
    }
)
OUTPUT_CHUNK: Final = Schema(
    {
        1: ProtoField("delta", SPOKEN),
        3: ProtoField("finish_reason", REASONS),
        4: ProtoField("index", "int"),
    }
)
RESPONSE: Final = Schema(
    {
        1: ProtoField("id"),
        2: ProtoField("outputs", OUTPUT, many=True),
        6: ProtoField("model"),
        7: ProtoField("system_fingerprint"),
        9: ProtoField("usage", USAGE),
        10: ProtoField("citations", many=True),
    }
)
CHUNK: Final = Schema(
    {
        1: ProtoField("id"),
        2: ProtoField("outputs", OUTPUT_CHUNK, many=True),
        4: ProtoField("model"),
        5: ProtoField("system_fingerprint"),
        6: ProtoField("usage", USAGE),
        7: ProtoField("citations", many=True),
    }
)
DEFERRED: Final = Schema({1: ProtoField("response", RESPONSE)})
IMAGES_REQUEST: Final = Schema(
    {
        1: ProtoField("prompt"),
        2: ProtoField("model"),
        3: ProtoField("n", "int"),
        4: ProtoField("user"),
        5: ProtoField("image", IMAGE),
        17: ProtoField("images", IMAGE, many=True),
    }
)
GENERATED: Final = Schema({1: ProtoField("base64"), 3: ProtoField("url")})
IMAGES: Final = Schema(
    {
        1: ProtoField("images", GENERATED, many=True),
        2: ProtoField("model"),
        3: ProtoField("usage", USAGE),
    }
)
