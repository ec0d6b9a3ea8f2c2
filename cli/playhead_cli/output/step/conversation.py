"""The messages of a call: new ones in full, earlier ones in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from playhead_cli.output.step.bodies import text_lines
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, TITLE
from playhead_cli.output.words import FOLD, count, label, one_line, size
from playhead_genai.messages import (
    Blob,
    File,
    InputMessage,
    OutputMessage,
    Part,
    Reasoning,
    ToolCall,
    ToolCallResponse,
    Uri,
    plain,
)
from playhead_genai.messages import Text as TextPart
from playhead_genai.readable_text import arguments_of, calls_in, named_arguments, news, spelt, text_of
from playhead_replay.run.messages import Messages

if TYPE_CHECKING:
    from playhead_cli.json_output.runs import PrintedReplayedStep
    from playhead_replay.runner.from_a_step import ShownStep


CALL_CHARS = 100
"""Longest call of a tool that is written in one line."""
REASONING_CHARS = 60
"""Characters of reasoning that its line shows."""

ASKED, ANSWERED = "→", "←"


def asked_lines(messages: Messages, everything: bool = False) -> Iterator[Text]:
    """Yield the new messages of a call; ``everything``: the earlier ones too."""
    new = messages.input if everything else news(messages.input)
    earlier = messages.input[: len(messages.input) - len(new)]
    if earlier:
        yield Text()
        roles = Counter(message.role for message in earlier)
        told = ", ".join(f"{number} {role}" for role, number in roles.items())
        yield Text(f"{FOLD} {count(len(earlier), 'earlier message')}: {told} (--all)", FAINT)
    elif messages.system:
        yield from message_lines(InputMessage(role="system", parts=messages.system), ASKED)
    calls = calls_in(messages.input)
    for message in new:
        yield from message_lines(message, ASKED, calls, everything)
    if messages.tools and not earlier:
        yield Text()
        yield Text("tools: " + ", ".join(tool.name for tool in messages.tools), FAINT)


def answered_lines(messages: Messages, everything: bool = False) -> Iterator[Text]:
    """Yield the response of the model; ``everything``: its reasoning too."""
    calls = calls_in(messages.input)
    for message in messages.output:
        yield from message_lines(message, ANSWERED, calls, everything)


def message_lines(
    message: InputMessage | OutputMessage,
    arrow: str,
    calls: Mapping[str, ToolCall] | None = None,
    everything: bool = True,
) -> Iterator[Text]:
    """One message, after an empty line.

    ``arrow``: whether it went to the model or came from it. ``calls``: earlier calls by id, so that a
    result names its tool. ``everything``: reasoning is not folded.
    """
    yield Text()
    yield Text(f"{arrow} {message.role}{f' {message.name}' if message.name else ''}", TITLE)
    for part in message.parts:
        yield from _part_lines(part, calls or {}, everything)


def _part_lines(part: Part, calls: Mapping[str, ToolCall], everything: bool) -> Iterator[Text]:
    if isinstance(part, TextPart):
        yield from _indented(part.content)
    elif isinstance(part, Reasoning):
        if everything or not part.content:
            yield from _indented(part.content or "(reasoning that the provider withholds)", FAINT)
        else:
            said = one_line(part.content, REASONING_CHARS)
            yield Text(f"  {FOLD} reasoning, {len(part.content)} characters: {said} (--all)", FAINT)
    elif isinstance(part, ToolCall):
        yield from call_lines(part.name, part.arguments, "calls ")
    elif isinstance(part, ToolCallResponse):
        call = calls.get(part.id or "")
        if call is not None:
            yield Text(f"  {one_line(_call(call.name, call.arguments), CALL_CHARS)}", NUMBER)
        yield from text_lines(text_of(part.response), "", everything)
    elif isinstance(part, Blob):
        kind = f"{part.modality} {part.mime_type or ''}".strip()
        yield Text(f"  [{kind}, {size(len(part.content) * 3 // 4)}]", FAINT)
    elif isinstance(part, File | Uri):
        place = part.file_id if isinstance(part, File) else part.uri
        yield Text(f"  [{part.modality} {place}]", FAINT)
    else:
        yield from _indented(text_of(plain(part)))


def call_lines(name: str, arguments: Any, before: str, indent: str = "  ") -> Iterator[Text]:
    """Yield a call of a tool: in one line, or an argument a line if that would be long."""
    whole = _call(name, arguments)
    named = named_arguments(arguments)
    if named is None or (len(whole) <= CALL_CHARS and "\\n" not in whole):
        yield Text(f"{indent}{before}{whole}", NUMBER)
        return
    yield Text(f"{indent}{before}{name}", NUMBER)
    for argument, value in named.items():
        lines = text_of(value).splitlines() or [""]
        if len(lines) == 1:
            yield Text(f"    {argument}: {spelt(value)}")
        else:
            yield Text(f"    {argument}:")
            yield from (Text(f"      {line}") for line in lines)


def _call(name: str, arguments: Any) -> str:
    named = named_arguments(arguments)
    if named is None:
        return f"{name}({arguments_of(arguments)})"
    return f"{name}({', '.join(f'{key}={spelt(value)}' for key, value in named.items())})"


def _indented(text: str, style: str = "") -> Iterator[Text]:
    return (Text(f"  {line}", style) for line in text.splitlines())


def shown_lines(one: ShownStep) -> Iterator[Text]:
    """Yield a step: new messages, the answer, and what the program printed afterwards."""
    line = Text(f"{one.step.number:>3} ", NUMBER)
    line.append(f"{one.fidelity or '-':<8}", style=ERROR if one.fidelity == "blocked" else FAINT)
    line.append(label(one.step.span))
    if one.recorded not in (None, one.step.number):
        line.append(f"  step {one.recorded} of the tape", style=FAINT)
    yield line
    for message in news(one.messages.input):
        yield from message_lines(message, ASKED)
    for message in one.messages.output:
        yield from message_lines(message, ANSWERED)
    for name, lines in _streams(one):
        yield Text()
        yield Text(name, FAINT)
        yield from (Text(f"  {line}") for line in lines)
    yield Text()


def shown_object(one: ShownStep) -> PrintedReplayedStep:
    """Return a step as an object, with all messages."""
    return {
        "number": one.step.number,
        "recorded_number": one.recorded,
        "name": one.step.span.name,
        "fidelity": one.fidelity or None,
        "input_messages": [plain(message) for message in one.messages.input],
        "output_messages": [plain(message) for message in one.messages.output],
        "printed": [{"stream": name, "text": text} for name, text in one.printed],
    }


def _streams(one: ShownStep) -> Iterator[tuple[str, list[str]]]:
    for name in ("stdout", "stderr"):
        text = "".join(piece for stream, piece in one.printed if stream == name)
        if text:
            yield name, text.splitlines()
