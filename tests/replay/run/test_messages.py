"""Messages of a call whose span says odd things about what it left out."""

import pytest
from support.tapes.handmade import HandMade

from playhead_replay import Run
from playhead_replay.run.messages import messages_of
from playhead_semconv import attributes as a

BODY = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}]}'


@pytest.mark.parametrize(
    "said", [[["nested"], 1, None, {"x": 1}], "text", [a.GEN_AI_INPUT_MESSAGES, ["x"]], 7, None]
)
def test_what_a_span_says_it_left_out_may_be_anything(said):
    made = HandMade().start()
    made.exchange(request=BODY, chunks=())
    run = Run.of_tapes([made.exit().tape()], [], "x")
    found = messages_of({a.PLAYHEAD_DERIVED: said, a.PLAYHEAD_WIRE: "openai.chat"}, run.exchanges)
    assert [message.role for message in found.input] == ["user"]
