"""Where a request names the model that it asks: in JSON, in protobuf, or in its URL."""

import pytest
from conformance.suite.derived_calls import OTHERS, XAI_ASKED
from support.answers.wires import dump

from playhead_genai.providers import requested_model

CHAT = "https://any.host/v1/chat/completions"
ASKED = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "Hi"}]}
XAI = "api.x.ai:443/xai_api.Chat/GetCompletion"
PLACES = [
    (CHAT, dump(ASKED), "gpt-5.5"),
    (XAI, XAI_ASKED, "m-1"),
    (XAI.replace("GetCompletion", "GetCompletionChunk"), XAI_ASKED, "m-1"),
    *((key.partition(" ")[2], body, said[3]) for said in OTHERS.values() for key, body, *_ in [said]),
    (CHAT, b"{", ""),
    (CHAT, b"\xff", ""),
    (XAI, b"\xff" * 20, ""),
    ("https://any.host/form", b'{"model":"gpt-5.5"}', ""),
    ("api.any.host:443/another.Service/GetCompletion", XAI_ASKED, ""),
]


@pytest.mark.parametrize(("url", "body", "model"), PLACES)
def test_the_model_that_a_request_asks(url: str, body: bytes, model: str):
    assert requested_model("POST", url, body) == model
