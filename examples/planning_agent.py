"""An agent that reports what it does: its type, goal, phases, decisions, signals, and its result.

Nothing here needs a model or a key. `playhead show` prints the reports at their steps.
"""

import sys

import playhead

STOCK = {"tent": 3, "stove": 0}


@playhead.tool
def look_up(item: str) -> list[int]:
    count = STOCK.get(item)
    return [] if count is None else [count]


@playhead.step("planning")
def plan(items: list[str]) -> list[str]:
    for number, item in enumerate(items, 1):
        playhead.task(f"t{number}", name=f"order {item}", status="pending")
    return items


def order(item: str) -> str:
    found = look_up(item)
    playhead.signal("empty_retrieval", "first_attempt", not found)
    if not found:
        playhead.failure("retrieval", "no_results", step="look_up", message=item)
    in_stock = bool(found and found[0])
    chosen = "order" if in_stock else "ask the supplier"
    playhead.decision(
        f"what to do about {item}",
        ["order", "ask the supplier"],
        chosen,
        rejected={} if in_stock else {"order": "not in stock"},
        method="rule_based",
        confidence=1.0,
    )
    if not in_stock:
        playhead.message("supplier", "question", {"item": item})
    return f"{item}: {chosen}"


def main(items: list[str]) -> None:
    playhead.agent("purchasing")
    playhead.goal(f"order {', '.join(items)}", type="purchase")
    playhead.triggered_by("user")
    with playhead.phase("planning"):
        items = plan(items)
    with playhead.phase("executing", reason="the plan is ready"):
        done = [order(item) for item in items]
    print(playhead.result("; ".join(done)))


if __name__ == "__main__":
    main(sys.argv[1:] or ["tent", "stove", "lamp"])
