"""Request bodies that extend earlier ones: exact on reading, small on tape."""

from hypothesis import given
from hypothesis import strategies as st

from playhead_core.facts import Fact, digest_of
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.recorder.bodies import SMALL_BYTES, Bodies, common_prefix
from playhead_semconv import events as e


def clean(data, start=0):
    return data, 0


def read(contents):
    tape = MemoryTape(
        Fact(0, 1, e.PLAYHEAD_EXCHANGE_REQUEST, body=content, seq=seq)
        for seq, content in enumerate(contents)
    )
    return [tape.read(content) for content in contents]


@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=300))
def test_common_prefix(shared, left, right):
    one, other = shared + left, shared + right
    length = common_prefix(one, other)
    assert length >= len(shared)
    assert one[:length] == other[:length]
    assert length == min(len(one), len(other)) or one[length] != other[length]


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(min_size=1, max_size=400)), max_size=25))
def test_every_body_is_read_back(steps):
    """Four histories that grow in permits, some cut back."""
    histories = [b"history %d " % number * 60 for number in range(4)]
    bodies = Bodies(clean)
    sent, contents = [], []
    for which, new in steps:
        histories[which] = (histories[which] + new)[-20_000:]
        body = histories[which] + b"]}"
        written, content, count = bodies.written(body)
        assert (written, count) == (body, 0)
        assert (content.digest, content.size) == (digest_of(body), len(body))
        sent.append(body)
        contents.append(content)
    assert read(contents) == sent


def test_an_extension_holds_only_what_is_new():
    bodies = Bodies(clean)
    first = b"x" * 10_000
    _, whole, _ = bodies.written(first)
    _, extended, _ = bodies.written(first + b"and more")
    assert (whole.base, whole.inline) == (None, first)
    assert (extended.base, extended.base_bytes, extended.inline) == (
        digest_of(first),
        10_000,
        b"and more",
    )
    assert bodies.written(first)[1] is whole


def test_small_bodies_and_strangers_are_whole():
    bodies = Bodies(clean)
    bodies.written(b"a" * 5000)
    assert bodies.written(b"a" * SMALL_BYTES)[1].base is None
    assert bodies.written(b"b" * 5000)[1].base is None


def test_memory_is_bounded():
    bodies = Bodies(clean, kept_bytes=50_000)
    for number in range(100):
        bodies.written(b"%d " % number + b"x" * 9_000)
    assert bodies._bytes <= 50_000 + 10_000
    assert len(bodies._latest) <= 6


def test_after_a_fork_nothing_is_referred_to():
    bodies = Bodies(clean)
    bodies.written(b"x" * 10_000)
    bodies.forget()
    assert bodies.written(b"x" * 10_000 + b"y")[1].base is None


def test_a_body_is_redacted_before_it_is_a_base():
    def redact(data, start=0):
        return data.replace(b"secret", b"[redacted]"), data.count(b"secret")

    bodies = Bodies(redact)
    first = b"x" * 1000 + b"secret" + b"y" * 1000
    written, content, count = bodies.written(first)
    assert (b"secret" in written, count) == (False, 1)
    again, extended, _ = bodies.written(first + b"more")
    assert b"secret" not in again
    assert extended.base == content.digest
    assert read([content, extended]) == [written, again]


def test_bodies_that_share_a_beginning_go_on_from_the_first_that_had_it():
    bodies, prompt = Bodies(clean), b"x" * 3000
    first = bodies.written(prompt)[1]
    asked = [bodies.written(prompt + b"poll %d" % number + b"y" * 200) for number in range(20)]
    assert {content.base for _, content, _ in asked} == {first.digest}
    talk, permits = prompt, []
    for number in range(20):
        talk += b"turn %d" % number + b"z" * 200
        permits.append(bodies.written(talk))
    told = [content for _, content, _ in permits]
    assert [one.base for one in told] == [first.digest, *(one.digest for one in told[:-1])]
    last = bodies.written(prompt + b"another" * 30)
    assert last[1].base == first.digest
    pieces = [first, *(content for _, content, _ in [*asked, *permits, last])]
    assert read(pieces) == [prompt, *(body for body, _, _ in [*asked, *permits, last])]


def test_what_was_written_long_ago_is_not_gone_on_from():
    """Its run may have been deleted since: a process does not hear of that."""
    now_s = [0.0]
    bodies = Bodies(clean, now_s=lambda: now_s[0])
    prompt = b"prompt " * 1000
    found = []
    for minute in range(25):
        now_s[0] = minute * 60.0
        found.append(bodies.written(prompt + b"%d" % minute)[1])
        assert bodies.written(prompt + b"%d" % minute)[1] == found[-1]
    wholes = {minute: content for minute, content in enumerate(found) if content.base is None}
    assert [*wholes] == [0, 11, 22]  # ten minutes are not too long
    origins = [wholes[11 * (minute // 11)].digest for minute in range(25)]
    assert [content.base or content.digest for content in found] == origins
