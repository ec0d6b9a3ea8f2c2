"""Compact text forms of answers of the query API, because agents pay for each token that they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from playhead_cli.output.words import age, count, took
from playhead_core.untrusted.shown_text import visible
from playhead_genai.prices import dollars

LONGEST_CHARS = 2000
"""Default number of characters shown of one text."""

LONGEST_URL_CHARS = 300
MOST_STEPS = 10
"""Steps of the time of a run that are listed, those that took most."""
MOST_ORIGINS = 5
"""Sources of a value that are listed."""

Answer = dict[str, Any]


def shortened(text: str, longest: int = LONGEST_CHARS) -> str:
    """Return the beginning and the end of a long text, with the number of characters left out."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} …[{len(text) - 2 * half} characters]… {text[-half:]}"


def run_line(run: Answer, now_ns: int) -> str:
    """``refund-7 failure 2h ago, 12 steps, 1 error, 4068+322 tokens, gpt-4o``."""
    words = [count(run["steps"], "step")]
    if run["errors"]:
        words.append(count(run["errors"], "error"))
    words.append(f"{run['input_tokens']}+{run['output_tokens']} tokens")
    words += [", ".join(run["models"])] if run["models"] else []
    words += _cost(run["cost_usd"], bool(run["unpriced"]))
    words += [f"error types {', '.join(run['error_types'])}"] if run["error_types"] else []
    return f"{run['name']} {run['status']} {age(now_ns - run['started_ns'])} ago, {', '.join(words)}"


def tree_lines(tree: Answer) -> Iterator[str]:
    """Yield a line per span, indented by depth: id, name, URL, status, duration, error."""
    for line in tree["spans"]:
        words = [line["span_id"], line["name"] or "(no name)"]
        words += [shortened(line["url"], LONGEST_URL_CHARS)] if line["url"] else []
        words += [str(line["status_code"])] if line["status_code"] is not None else []
        if line["ended_ns"] is None:
            words.append("(not ended)")
        else:
            words.append(took(line["ended_ns"] - line["started_ns"]))
        if line["input_tokens"] or line["output_tokens"]:
            words.append(f"{line['input_tokens']}+{line['output_tokens']} tokens")
        if line["failed"]:
            words.append(f"FAILED {shortened(line['error'] or '', 200)}")
        yield "  " * line["depth"] + " ".join(words)
    if tree["next"] is not None:
        yield f"({tree['total'] - tree['next']} more: offset={tree['next']})"


def message_lines(messages: Answer, longest: int) -> Iterator[str]:
    """System instructions, input and output messages, names of tools."""
    for part in messages["system_instructions"]:
        yield f"system: {_part(part, longest)}"
    for name, sign in (("input_messages", ""), ("output_messages", "answer of ")):
        for message in messages[name]:
            said = " ".join(_part(part, longest) for part in message.get("parts", ()))
            yield f"{sign}{message.get('role', '?')}: {said}"
    tools = [str(tool.get("name", "?")) for tool in messages["tool_definitions"]]
    if tools:
        yield f"tools: {', '.join(tools)}"


def _part(part: Answer, longest: int) -> str:
    kind = part.get("type")
    if kind in ("text", "reasoning"):
        said = shortened(str(part.get("content", "")), longest)
        return said if kind == "text" else f"(reasoning) {said}"
    if kind == "tool_call":
        return f"calls {part.get('name')}({_value(part.get('arguments'), longest)})"
    if kind == "tool_call_response":
        return f"result {_value(part.get('response', part.get('result')), longest)}"
    return f"({kind}) {_value({k: v for k, v in part.items() if k != 'type'}, longest)}"


def _value(value: Any, longest: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shortened(text, longest)


def span_lines(span: Answer, longest: int) -> Iterator[str]:
    """Yield a span: name, status, attributes, events."""
    yield f"{span['name']} {span['status']} {span['status_message']}".strip()
    for name, value in span["attributes"].items():
        yield f"{name} = {_value(value, longest)}"
    for event in span["events"]:
        yield f"event {event['name']}: {_value(event['attributes'], longest)}"


def exchange_lines(found: Answer, part: str, longest: int) -> Iterator[str]:
    """Yield each attempt: its request with headers and body, and the response.

    ``part``: ``request``, ``response`` or ``both``.
    """
    for one in found["exchanges"]:
        yield f"{one['name']} {one['key']}"
        if part != "response":
            yield from _side("asked", one["request_headers"], one["request"], longest)
        if part != "request":
            if one["status_code"] is not None:
                yield f"answered {one['status_code']}"
            yield from _side("answer", one["response_headers"], one["response"], longest)
            ended = one["error"] or one["end"] or "no answer when the tape ends"
            yield f"end: {shortened(ended, longest)}"


def _side(name: str, headers: list[list[str]], body: Answer | None, longest: int) -> Iterator[str]:
    for header, value in headers:
        yield f"{name} header {header}: {shortened(value, longest)}"
    if body is None:
        yield f"{name}: its content was not recorded"
    elif body.get("text") is not None:
        yield f"{name}: {shortened(body['text'], longest)}"
    else:
        yield f"{name} (base64): {shortened(body['base64'], longest)}"


def difference_lines(found: Answer, offset: int, limit: int) -> Iterator[str]:
    """Return the common part of two runs, then each difference with both sides."""
    left, right = found["left"]["run"], found["right"]["run"]
    if found["identical"]:
        yield f"{left} and {right} are identical in {count(len(found['same_steps']), 'step')}"
        return
    same = ", ".join(str(number) for number in found["same_steps"]) or "none"
    yield f"{left} (-) and {right} (+): {len(found['differences'])} differences; same steps: {same}"
    for one in found["differences"][offset : offset + limit]:
        place = f"step {_step(one['left_step'])}→{_step(one['right_step'])} {one['label']}"
        repeats = " (repeats an earlier one)" if one["follows"] else ""
        yield f"{place}: {one['kind']} {one['path'] or ''}".rstrip() + repeats
        yield from _both(one)
    left_over = len(found["differences"]) - offset - limit
    if left_over > 0:
        yield f"({left_over} more: offset={offset + limit})"
    outcome = found["outcome"]
    if outcome is not None:
        yield f"outcome {outcome['path']}"
        yield from _both(outcome)


def _both(sides: Answer) -> Iterator[str]:
    for sign, name in (("-", "left"), ("+", "right")):
        if sides[name]:
            yield f"  {sign} {shortened(sides[name])}"


def _step(number: int | None) -> str:
    return "–" if number is None else str(number)


def hit_lines(found: Answer) -> Iterator[str]:
    """Yield occurrences of a text: run, step, span, author, surrounding text."""
    for hit in found["hits"]:
        step = f":{hit['step']}" if hit["step"] else ""
        words = (f"{hit['run']}{step}", hit["span_id"], hit["who"])
        yield f"{' '.join(filter(None, words))}: {hit['excerpt']}"
    if found["behind"]:
        yield f"({found['behind']} groups of spans and facts cannot be searched yet)"


def group_lines(stats: Answer) -> Iterator[str]:
    """Sums: the total, then each group."""
    for group in (stats["total"], *stats["groups"]):
        statuses = ", ".join(f"{number} {status}" for status, number in group["statuses"].items())
        words = [
            f"{group['key'] or 'all'}: {count(group['runs'], 'run')} ({statuses})",
            f"{group['steps']} steps",
            f"{group['errors']} errors",
            f"{group['input_tokens']}+{group['output_tokens']} tokens",
            *_cost(group["cost_usd"], bool(group["unpriced_runs"])),
            *_took(group),
        ]
        yield ", ".join(words)


def _took(group: Answer) -> list[str]:
    """How long half and nearly all of the runs took at most."""
    half, most = group["duration_p50_ns"], group["duration_p99_ns"]
    return [] if half is None else [f"p50 {took(half)}, p99 {took(most)}"]


def _cost(usd: float | None, more: bool) -> list[str]:
    """``$0.09``; with a ``+`` if some prices are unknown."""
    if usd is None:
        return ["cost unknown"] if more else []
    return [dollars(usd) + ("+" if more else "")]


def joined(lines: Iterable[str], nothing: str) -> str:
    """Return the lines as one text; ``nothing`` if there are none."""
    return visible("\n".join(lines)) or nothing


def time_lines(found: Answer) -> Iterator[str]:
    """Yield the parts of the time of a run, its longest steps, its critical path, and its failures."""
    cost = "" if found["cost_usd"] is None else f", {dollars(found['cost_usd'])}"
    yield f"{found['run']} {took(found['duration_ns'])}{cost}"
    parts = {"models": "model", "tools": "tool", "retries": "retry", "waiting for a person": "waiting"}
    for name, field in (parts | {"own code": "code"}).items():
        yield f"{name}: {took(found[f'{field}_ns'])}"
    longest = sorted(found["steps"], key=lambda one: -(one["time_ns"] + one["retry_ns"]))
    for one in longest[:MOST_STEPS]:
        cost = "" if one["cost_usd"] is None else f", {dollars(one['cost_usd'])}"
        yield f"step {one['place']} {one['name']}: {took(one['time_ns'] + one['retry_ns'])}{cost}"
    if found["critical_path"]:
        yield f"the end waited for steps {', '.join(found['critical_path'][-MOST_STEPS:])}"
    for one in found["failures"]:
        recovered = ", recovered" if one["recovered"] else ""
        where = f" at step {one['place']}" if one["place"] else ""
        yield f"failure {one['type']}/{one['code']}{where}: {took(one['time_ns'])}{recovered}"


def blame_lines(found: Answer, longest: int) -> Iterator[str]:
    """Yield each argument of the calls, with everything that held it before, the earliest first."""
    for call in found["calls"]:
        yield f"{found['run']}:{call['place']} {call['name']}"
        for value in call["values"]:
            part = " (a part of it)" if value["is_part"] else ""
            yield f"  {value['path']}{part}: {shortened(value['value'], longest)}"
            for one in value["origins"][:MOST_ORIGINS]:
                where = f" at step {one['place']}" if one["place"] else ""
                yield f"    {one['kind']} {one['name']}".rstrip() + where
            if not value["origins"]:
                yield "    in no recorded source"
            if value["runs"]:
                yield f"    also in {', '.join(value['runs'][:MOST_ORIGINS])}"


def finding_lines(found: Answer, longest: int) -> Iterator[str]:
    """Yield what a run means: its session, failures, loops, decisions and states."""
    session = found["session"]
    reasons = f" ({found['status_reason']})" if found["status_reason"] else ""
    yield f"status {session['status']}{reasons}"
    for name in ("agent_type", "goal", "trigger", "parent", "result"):
        if session[name]:
            yield f"{name}: {shortened(session[name], longest)}"
    for one in session["task_graph"]:
        about = " ".join(word for word in (one["id"], one["name"], one["status"]) if word)
        yield f"task {'  ' * one['depth']}{shortened(about, longest)}"
    for one in found["failures"]:
        recovered = ", recovered" if one["recovered"] else ""
        yield f"failure {one['type']}/{one['code']} at step {one['step']}{recovered}"
    for one in found["loops"]:
        if one["same_result"]:
            names = "+".join(one["names"])
            yield f"loop {names} {one['times']} times, steps {one['first']} to {one['last']}"
    for one in found["decisions"]:
        reason = f": {shortened(one['reason'], longest)}" if one["reason"] else ""
        yield f"decision at step {one['step']}: {one['question']} -> {one['chosen']}{reason}"
    for one in found["transitions"]:
        lasted = "" if one["lasted_ns"] is None else f" for {took(one['lasted_ns'])}"
        yield f"state {one['state'] or '(none)'} ({one['type']}){lasted}"
