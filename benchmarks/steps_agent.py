"""An agent of N steps whose history grows by about 2.3 KB per step; answered in the process, no server.

Text is drawn from a word list with a fixed seed; unlike repeated text, it is not trivially compressible.
"""

import json
import random
import sys
from string import ascii_lowercase

import httpx2
import openai

from playhead_cli.demo.shapes import openai_chat, sse

_LETTERS = random.Random(1)
WORDS = ["".join(_LETTERS.choices(ascii_lowercase, k=_LETTERS.randint(3, 9))) for _ in range(4000)]


def text(seed: int, length: int) -> str:
    """About ``length`` characters."""
    return " ".join(random.Random(seed).choices(WORDS, k=length // 7))


class Transport(httpx2.BaseTransport):
    """Requests one more tool call in every answer."""

    def __init__(self, seed: int) -> None:
        self.step, self.seed = 0, seed

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        self.step += 1
        call = openai_chat.tool_call(
            f"call_{self.step}", "search", {"query": text(self.seed + self.step, 120), "limit": 5}
        )
        whole = openai_chat.completion(tool_calls=[call], id=f"chatcmpl-{self.step}")
        return httpx2.Response(
            200, headers={"content-type": "application/json"}, content=sse.encode(whole)
        )


def main(steps: int, run: int = 0) -> None:
    """Run it; each ``run`` has different texts.

    Prints the size of the last request in bytes: the whole history.
    """
    seed = run * 100_000
    http = httpx2.Client(transport=Transport(seed))
    client = openai.OpenAI(api_key="bench", base_url="http://bench.invalid/v1", http_client=http)
    messages = [{"role": "system", "content": text(seed, 2000)}, {"role": "user", "content": "Go on."}]
    for step in range(steps):
        answer = client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message
        messages.append(answer.to_dict())
        result = {"step": step, "found": text(seed + 10_000 + step, 1900)}
        for call in answer.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
    print(len(json.dumps(messages)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
