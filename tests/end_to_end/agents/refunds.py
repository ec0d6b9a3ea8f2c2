"""Steps of a chat and a refund each; a refund is done once, and the shop is asked for it over HTTP."""

import json
import sys
import urllib.request

from openai import OpenAI

import playhead

STEPS, SHOP = int(sys.argv[1]), sys.argv[2]


@playhead.idempotent("refund:{order}")
def refund(order: int) -> str:
    asked = urllib.request.Request(f"{SHOP}/refund", json.dumps({"order": order}).encode())
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)["receipt"]


client = OpenAI(max_retries=0)
lines = []
for order in range(STEPS):
    history = [{"role": "user", "content": f"{order} what of this order?"}]
    answer = client.chat.completions.create(model="gpt-5.5", messages=history)
    try:
        receipt = refund(order)
    except playhead.OutcomeUnknown:
        receipt = "unknown"
    lines.append(f"{order} {answer.choices[0].message.content}: {receipt}\n")
with open("report.txt", "w") as report:
    report.writelines(lines)
