"""Error bodies of the providers. The status and headers that go with them are in the table."""

from __future__ import annotations

from playhead_cli.demo.shapes.sse import Json

OPENAI = {
    400: ("invalid_request_error", "invalid_value", "Invalid value for 'temperature'."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached."),
    500: ("server_error", None, "The server had an error."),
    503: ("server_error", None, "The engine is currently overloaded."),
}
"""Status → (type, code, message)."""

ANTHROPIC = {
    400: ("invalid_request_error", "max_tokens: Field required"),
    401: ("authentication_error", "invalid x-api-key"),
    404: ("not_found_error", "model: not found"),
    429: ("rate_limit_error", "This request would exceed your rate limit."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}
"""Status → (type, message)."""


def openai(status: int, *, message: str = "") -> Json:
    """Return the body of an OpenAI error."""
    kind, code, usual = OPENAI[status]
    return {"error": {"message": message or usual, "type": kind, "param": None, "code": code}}


def anthropic(status: int, *, message: str = "") -> Json:
    """Return the body of an Anthropic error; also what an ``error`` event of a stream carries."""
    kind, usual = ANTHROPIC[status]
    return {
        "type": "error",
        "error": {"type": kind, "message": message or usual, "details": None},
        "request_id": "req_scripted",
    }
