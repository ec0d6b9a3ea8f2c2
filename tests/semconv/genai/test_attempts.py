"""Attempts of one call, by their bytes, their headers and how the one before went."""

from typing import Any

import pytest

from playhead_core.facts import Ask, Content, End, Exchange, ExchangeId, Part
from playhead_genai.attempts import before, is_next_attempt

URL = "POST https://any.host/v1/chat"


def attempt(
    status: int = 200, body: bytes = b"{}", key: str = URL, how: Any = "complete", **headers: str
) -> Exchange:
    flat = [word for name, value in headers.items() for word in (name.replace("_", "-"), value)]
    ask = Ask("http", key, Content.of(body), details={"playhead.http.headers": flat})
    head = {"http.response.status_code": status} if status else {}
    return Exchange(ExchangeId(1, "http", 0), ask, 0, head=head, end=End(how))


def over_grpc(code: int | None = None, answers: int = 0) -> Exchange:
    """A call of gRPC that ended with a status; None: the program cancelled it."""
    parts = [Part(Content.of(b"1"), 0, None)] * answers
    end = End("error" if code != 0 else "complete", values={} if code is None else {STATUS: code})
    ask = Ask("grpc", "any.host/xai_api.Chat/GetCompletion", Content.of(b"asked"))
    return Exchange(ExchangeId(1, "grpc", 0), ask, 0, parts=parts, end=end)


STATUS = "rpc.grpc.status_code"
STAINLESS = "X_Stainless_Retry_Count"
AMAZON = "Amz_Sdk_Invocation_Id"


@pytest.mark.parametrize(
    ("earlier", "later", "joined"),
    [
        (attempt(429), attempt(), True),
        (attempt(503), attempt(), True),
        (attempt(0, how="error"), attempt(), True),
        (attempt(0, how="abandoned"), attempt(), False),
        (attempt(200), attempt(), False),
        (attempt(400), attempt(), False),
        (attempt(429), attempt(body=b"{1}"), False),
        (attempt(429, body=b""), attempt(body=b""), True),
        (attempt(429), attempt(key=URL + "s"), False),
        (attempt(429, **{STAINLESS: "0"}), attempt(**{STAINLESS: "1"}), True),
        (attempt(200, **{STAINLESS: "0"}), attempt(**{STAINLESS: "1"}), True),
        (attempt(429, **{STAINLESS: "0"}), attempt(**{STAINLESS: "0"}), False),
        (attempt(429), attempt(**{STAINLESS: "1"}), False),
        (attempt(400, **{AMAZON: "a"}), attempt(**{AMAZON: "a"}), True),
        (attempt(503, **{AMAZON: "a"}), attempt(**{AMAZON: "b"}), False),
        (attempt(503, **{STAINLESS: "x"}), attempt(**{STAINLESS: "y"}), True),
        (over_grpc(14), over_grpc(0, 1), True),
        (over_grpc(4), over_grpc(0, 1), True),
        (over_grpc(3), over_grpc(0, 1), False),
        (over_grpc(1), over_grpc(0, 1), False),
        (over_grpc(), over_grpc(0, 1), False),
        (over_grpc(14, 1), over_grpc(0, 1), False),
        (over_grpc(0, 1), over_grpc(0, 1), False),
    ],
)
def test_the_next_attempt(earlier: Exchange, later: Exchange, joined: bool):
    assert is_next_attempt(later, earlier) is joined


def test_the_one_before():
    assert before(ExchangeId(7, "http", 3)) == ExchangeId(7, "http", 2)
    assert before(ExchangeId(7, "http", 0)) is None
