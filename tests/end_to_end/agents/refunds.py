"""Steps of a chat and a refund each; a refund is done once, and the shop is asked for it over HTTP."""

import json
import sys
import urllib.request

from asking import asked

import playhead

STEPS, SHOP = int(sys.argv[1]), sys.argv[2]


@playhead.idempotent("refund:{order}")
def refund(order: int) -> str:
    request = urllib.request.Request(f"{SHOP}/refund", json.dumps({"order": order}).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["receipt"]


lines = []
for order in range(STEPS):
    answer = asked(f"{order} what of this order?")
    try:
        receipt = refund(order)
    except playhead.OutcomeUnknown:
        receipt = "unknown"
    lines.append(f"{order} {answer}: {receipt}\n")
with open("report.txt", "w") as report:
    report.writelines(lines)
