"""The transcript of a conversation that each call sends again: the same as if each were read whole."""

import json
import random
from collections import Counter
from typing import Any

import pytest
from support.answers.spoken import CALL, RESULT, answer, request, talk
from support.tapes.handmade import HandMade

from playhead_genai.messages import plain
from playhead_receiver.api.reading import transcript_of
from playhead_replay import Run
from playhead_semconv import attributes as a

SYSTEM = {"role": "system", "content": "be brief"}


def said_whole(run: Run) -> list[tuple[int, str]]:
    """Step and message of all that is new, from messages that are read whole."""
    found: list[tuple[int, str]] = []
    lanes: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for step in run.steps:
        most = lanes[bool(run.exchanges_of(step))]
        messages = run.messages(step)
        texts = [("system", [plain(part) for part in messages.system])] if messages.system else []
        texts += [
            (str(one.role), [plain(part) for part in one.parts])
            for one in (*messages.input, *messages.output)
        ]
        now = Counter[str]()
        for one in texts:
            key = json.dumps(one)
            now[key] += 1
            if now[key] > most[key]:
                found.append((step.number, key))
        most |= now
    return found


def in_spans(made: HandMade, history: list[dict[str, Any]], text: str) -> None:
    """A call whose span has what was said."""

    def told(role: str, text: Any) -> dict[str, Any]:
        return {"role": role, "parts": [{"type": "text", "content": str(text)}]}

    messages = [told(one["role"], one["content"]) for one in history]
    said = {a.GEN_AI_INPUT_MESSAGES: json.dumps(messages)}
    said |= {a.GEN_AI_OUTPUT_MESSAGES: json.dumps([told("assistant", text)])}
    made.finish(made.begin("chat", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"}), **said)


@pytest.mark.parametrize("seed", range(12))
def test_only_what_a_call_adds_is_read_and_nothing_else_is_missed(seed: int):
    chance = random.Random(seed)
    made = HandMade().start()
    history: list[dict[str, Any]] = [SYSTEM] if chance.random() < 0.5 else []
    whole_in_spans = chance.random() < 0.3
    for number in range(40):
        what = chance.choice("aaaaaarctb")
        if what == "r" and len(history) > 2:  # something said before is changed
            history[chance.randrange(len(history))] = {"role": "user", "content": f"again {number}"}
        elif what == "c":  # the conversation is made short
            history = history[-chance.randrange(1, 4) :]
        elif what == "t":
            history += [CALL, RESULT]
        elif what == "a":
            history.append({"role": "user", "content": chance.choice(["yes", f"and {number}?"])})
        text = chance.choice(["yes", f"so {number}"])
        if whole_in_spans or chance.random() < 0.1:
            in_spans(made, history, text)
        else:
            talk(made, request(*history), answer(content=text))
        if chance.random() < 0.8:
            history.append({"role": "assistant", "content": text})
    tape = made.exit().tape()
    run = Run.of_tapes([tape], [span.otlp for span in made.spans], "x")
    transcript = transcript_of(run)
    assert transcript.left_out == []
    assert [(one.step, json.dumps((one.role, one.parts))) for one in transcript.said] == said_whole(run)
