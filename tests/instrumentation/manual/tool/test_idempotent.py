"""`playhead.idempotent`: done once per lineage, given again, and never silently twice."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.observed.again import again
from support.tapes.sessions import record, recording, replay

import playhead
from playhead_checkpoint.claims.sqlite import FILE
from playhead_core.rerun.plans import Plan
from playhead_core.settings import Settings
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

KEY, OUTCOME = a.PLAYHEAD_IDEMPOTENT_KEY, a.PLAYHEAD_IDEMPOTENT_OUTCOME


class Shop:
    """The world: counts what is done to it."""

    def __init__(self) -> None:
        self.refunds: list[int] = []

    def refund(self, order: int) -> dict[str, object]:
        self.refunds.append(order)
        return {"order": order, "receipt": (1, 2.5)}


@pytest.fixture
def shop():
    return Shop()


@pytest.fixture
def kept(tmp_path):
    """Settings of runs that are retries of each other."""
    return Settings(quiet=True, level="causal", data_dir=str(tmp_path / "data"), lineage="nightly")


def outcomes(tape) -> list[str]:
    ends = [fact for fact in tape.facts() if fact.name == e.PLAYHEAD_EXCHANGE_END]
    return [fact.attributes[OUTCOME] for fact in ends if OUTCOME in fact.attributes]


def test_a_retry_gets_the_result_and_does_nothing(shop, kept):
    @playhead.idempotent("refund:{order}")
    def refund(order):
        return shop.refund(order)

    first, tape = record(lambda: refund(81), settings=kept)
    second, later = record(lambda: refund(order=81), settings=kept)
    assert first == second == {"order": 81, "receipt": (1, 2.5)}
    assert shop.refunds == [81]
    assert (outcomes(tape), outcomes(later)) == (["performed"], ["given"])
    (asked,) = [fact for fact in tape.facts() if KEY in fact.attributes]
    assert asked.name == e.PLAYHEAD_EXCHANGE_REQUEST
    assert (asked.attributes[KEY], asked.attributes[a.PLAYHEAD_ASK_EFFECT]) == ("refund:81", "write")


def test_runs_of_their_own_do_it_each(shop, kept, tmp_path):
    alone = Settings(quiet=True, level="causal", data_dir=str(tmp_path / "data"))
    refund = playhead.idempotent("refund:{order}")(shop.refund)
    for _ in range(2):
        record(lambda: (refund(81), refund(81)), settings=alone)
    assert shop.refunds == [81, 81]


def test_a_lineage_of_the_program_joins_runs(shop, tmp_path):
    alone = Settings(quiet=True, level="causal", data_dir=str(tmp_path / "data"))
    once = playhead.idempotent("refund:81", lineage="orders")
    for _ in range(2):
        record(lambda: once.call(shop.refund, 81), settings=alone)
    assert shop.refunds == [81]


def test_a_call_takes_the_key_as_it_is(shop, kept):
    result, tape = record(
        lambda: playhead.idempotent('{"order": 81}').call(shop.refund, 81), settings=kept
    )
    assert result["order"] == 81
    assert [one.attributes[KEY] for one in tape.facts() if KEY in one.attributes] == ['{"order": 81}']


def test_a_key_may_be_made_by_a_function(shop, kept):
    refund = playhead.idempotent(lambda order: f"refund-{order}")(lambda order: shop.refund(order))
    record(lambda: (refund(1), refund(order=1), refund(2)), settings=kept)
    assert shop.refunds == [1, 2]


def test_async_functions_are_done_once_also_at_the_same_time(shop, kept):
    @playhead.idempotent("refund:{order}")
    async def refund(order):
        await asyncio.sleep(0.02)
        return shop.refund(order)

    async def main():
        return await asyncio.gather(*(refund(order) for order in (1, 1, 2, 1)))

    results, tape = record(lambda: asyncio.run(main()), settings=kept)
    assert [one["order"] for one in results] == [1, 1, 2, 1]
    assert sorted(shop.refunds) == [1, 2]
    assert sorted(outcomes(tape)) == ["given", "given", "performed", "performed"]
    again, now = replay(lambda: asyncio.run(main()), tape, settings=kept)
    assert again == results and len(shop.refunds) == 2
    assert compare(tape, now).verdict == "identical"


def test_threads_wait_for_the_one_that_does_it(shop, kept):
    entered, go_on = threading.Event(), threading.Event()

    def slow(order):
        entered.set()
        assert go_on.wait(60)
        return shop.refund(order)

    refund = playhead.idempotent("refund:{order}")(slow)
    got: list[object] = []

    def main():
        threads = [threading.Thread(target=lambda: got.append(refund(81))) for _ in range(3)]
        for one in threads:
            one.start()
        assert entered.wait(60)
        go_on.set()
        for one in threads:
            one.join(60)

    record(main, settings=kept)
    assert shop.refunds == [81]
    assert got == [{"order": 81, "receipt": (1, 2.5)}] * 3


def failing(times: list[int], error: BaseException):
    def fails():
        times.append(1)
        if len(times) == 1:
            raise error
        return "done"

    return fails


def test_an_error_leaves_the_outcome_unknown(kept):
    times: list[int] = []
    once = playhead.idempotent("k", name="send")(failing(times, TimeoutError("no answer")))
    with recording(settings=kept) as sink:
        with pytest.raises(TimeoutError):
            once()
        with pytest.raises(playhead.OutcomeUnknown) as told:
            once()
    assert len(times) == 1
    assert "send was begun before as 'k'" in str(told.value)
    assert "TimeoutError: no answer" in str(told.value)
    assert outcomes(sink.tape()) == ["unknown", "unknown"]


@pytest.mark.parametrize(
    ("rule", "calls", "results", "said"),
    [
        ("again", 2, ["done", "done"], ["again", "given"]),
        ("skip", 1, [None, None], ["skipped", "given"]),
    ],
)
def test_the_program_says_what_becomes_of_an_unknown_outcome(kept, rule, calls, results, said):
    times: list[int] = []
    once = playhead.idempotent("k", on_unknown=rule)(failing(times, TimeoutError()))
    with recording(settings=kept):
        with pytest.raises(TimeoutError):
            once()
    got, tape = record(lambda: [once(), once()], settings=kept)
    assert (len(times), got, outcomes(tape)) == (calls, results, said)


def test_an_error_that_says_that_nothing_was_done_frees_the_claim(kept):
    times: list[int] = []
    once = playhead.idempotent("k", not_done=(ConnectionRefusedError,))(
        failing(times, ConnectionRefusedError())
    )

    def main():
        with pytest.raises(ConnectionRefusedError):
            once()
        return once()

    result, tape = record(main, settings=kept)
    assert (result, outcomes(tape)) == ("done", ["not done", "performed"])


def test_a_result_that_cannot_be_kept_is_never_made_up(kept):
    times: list[int] = []

    def connects():
        times.append(1)
        return threading.Lock()

    once = playhead.idempotent("k")(connects)
    with recording(settings=kept):
        once()
        with pytest.raises(playhead.OutcomeUnknown, match="its result was not kept"):
            once()
    assert len(times) == 1


def test_one_key_belongs_to_one_effect(shop, kept):
    mail = playhead.idempotent("order:81", name="mail")(lambda: None)
    with recording(settings=kept):
        playhead.idempotent("order:81").call(shop.refund, 81)
        with pytest.raises(Exception, match="which refund has used before"):
            mail()


def test_an_effect_that_calls_itself_does_not_wait_for_itself(kept):
    @playhead.idempotent("k")
    def inner():
        return inner()

    with recording(settings=kept), pytest.raises(Exception, match="calls itself under its own key"):
        inner()


def test_it_holds_inside_of_a_tool_too(shop, kept):
    @playhead.tool
    def work(order):
        return playhead.idempotent(f"refund:{order}").call(shop.refund, order)

    for _ in range(2):
        result, tape = record(lambda: work(81), settings=kept)
        assert result["order"] == 81
        assert len([fact for fact in tape.facts() if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST]) == 1
    assert shop.refunds == [81]


def test_without_a_recording_the_function_is_called(shop, tmp_path):
    refund = playhead.idempotent("refund:{order}")(shop.refund)
    refund(81)
    refund(81)
    assert shop.refunds == [81, 81]


def test_where_nothing_can_be_claimed_nothing_is_done(shop, tmp_path):
    (tmp_path / "data").write_text("in the way")
    settings = Settings(quiet=True, level="causal", data_dir=str(tmp_path / "data"))
    with recording(settings=settings), pytest.raises(playhead.StoreError):
        playhead.idempotent("k").call(shop.refund, 81)
    assert shop.refunds == []


def test_credentials_in_a_result_are_not_kept(kept):
    secret = "sk-" + "abcdEFGH1234" * 4
    with recording(settings=kept):
        once = playhead.idempotent("k").call
        assert once(lambda: {"api_key": secret}) == {"api_key": secret}
        assert once(lambda: {"api_key": secret})["api_key"] != secret
    files = [one for one in Path(kept.data_dir).rglob("*") if one.is_file()]
    assert FILE in {one.name for one in files}
    assert not [one for one in files if secret.encode() in one.read_bytes()]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: playhead.idempotent(""), ValueError),
        (lambda: playhead.idempotent("k", on_unknown="maybe"), ValueError),
        (lambda: playhead.idempotent("{nobody}")(lambda order: order), ValueError),
        (lambda: playhead.idempotent("k")(lambda: (yield)), TypeError),
    ],
)
def test_what_makes_no_sense_is_an_error_where_it_is_written(make, error):
    with pytest.raises(error):
        make()


def test_a_resume_asks_the_claim_of_a_call_that_was_not_answered(shop, kept):
    refund = playhead.idempotent("refund:{order}")(shop.refund)

    def main():
        return [refund(1), refund(2)]

    _, tape = record(main, settings=kept)
    ends = [fact.seq for fact in tape.facts() if fact.name == e.PLAYHEAD_EXCHANGE_END]
    cut = type(tape)([fact for fact in tape.facts() if fact.seq < ends[1] - 1], tape.instance)
    results, now = replay(main, cut, settings=kept, plan=Plan("resume"))
    assert [one["order"] for one in results] == [1, 2]
    assert shop.refunds == [1, 2]
    assert outcomes(now) == ["given"]


def test_a_recording_that_does_not_use_it_loads_no_claims(tmp_path):
    program = "import playhead, sys; assert not {'sqlite3', 'playhead_checkpoint'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ})


@pytest.mark.parametrize("level", ["causal", "strict", "exchanges"])
def test_a_replay_is_answered_from_the_tape(tmp_path, level):
    source = """
import playhead, pathlib, threading

@playhead.idempotent("mail:{to}")
def mail(to):
    with open("sent.txt", "a") as sent:
        sent.write(to)
    return pathlib.Path("sent.txt").stat().st_size

def work(to):
    print(mail(to), mail(to))

work("a")
one = threading.Thread(target=work, args=("b",))
one.start(); one.join()
"""
    done = again(tmp_path, source, level=level, PLAYHEAD_DATA_DIR=str(tmp_path / "data")).identical()
    assert done.recorded.stdout == "1 1\n2 2\n"
    assert (tmp_path / "sent.txt").read_text() == "ab"
    assert outcomes(done.tape) == ["performed", "given"] * 2
