"""Child processes of the receiver: how many, what is kept of them, how they end."""

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from playhead_core.errors import UsageError
from playhead_core.rerun.plans import Edit
from playhead_receiver.api.routes.reruns import fork_words, patch_lines
from playhead_receiver.config.configuration import Programs
from playhead_receiver.reruns.child import MOST_BYTES, NotStarted, Ordered, Rerun
from playhead_receiver.reruns.reruns import AT_ONCE, KEPT, Reruns, TooManyReruns

ORDERED = Ordered("replay", "refund-1", "07" * 16, None, "ann")
PATIENCE_S = 60
HANGS = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"up")
if os.fork() == 0:
    signal.pause()
signal.pause()
"""


@pytest.fixture
def reruns() -> Iterator[Reruns]:
    made = Reruns(Programs((sys.executable, "-c"), {"WORD": "given"}))
    yield made
    made.close()


def ended(one: Rerun) -> Rerun:
    deadline = time.monotonic() + PATIENCE_S
    while one.state == "running":
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    return one


def test_what_a_child_says_is_kept_apart_and_counted(reruns: Reruns):
    told = threading.Event()
    program = "import os; os.write(1, b'out ' + os.environb[b'WORD']); os.write(2, b'err'); exit(3)"
    one = ended(reruns.start(ORDERED, [program], told.set))
    assert (one.state, one.exit_code, one.printed, one.said) == ("ended", 3, b"out given", b"err")
    assert told.is_set() and one.revision > 2 and one.ended_ns is not None
    assert reruns.get(one.id) is one and reruns.get("other") is None


def test_only_the_end_of_a_long_output_is_kept(reruns: Reruns):
    program = f"import sys; sys.stdout.write('a' * {MOST_BYTES} + 'the end')"
    one = ended(reruns.start(ORDERED, [program]))
    assert len(one.printed) == MOST_BYTES and one.printed.endswith(b"the end") and one.is_cut


def test_one_too_many_is_refused_and_what_ignores_its_end_is_killed_with_its_children(reruns: Reruns):
    some = [reruns.start(ORDERED, [HANGS]) for _ in range(AT_ONCE)]
    with pytest.raises(TooManyReruns, match="are running already"):
        reruns.start(ORDERED, [HANGS])
    some[0].close()
    assert ended(some[0]).state == "cancelled" and some[0].exit_code == -9
    reruns.start(ORDERED, ["pass"])
    reruns.close()
    assert [ended(one).state == "running" for one in reruns.all()] == [False] * 3


def test_one_that_is_asked_to_end_ends(reruns: Reruns):
    one = reruns.start(ORDERED, ["import signal; print('up', flush=True); signal.pause()"])
    while b"up" not in one.printed:
        threading.Event().wait(0.01)
    one.cancel()
    one.cancel()
    assert ended(one).state == "cancelled" and one.exit_code == -15


def test_the_oldest_that_has_ended_makes_room(reruns: Reruns):
    first = ended(reruns.start(ORDERED, ["pass"]))
    for _ in range(KEPT):
        ended(reruns.start(ORDERED, ["pass"]))
    assert len(reruns.all()) == KEPT and reruns.get(first.id) is None


def test_what_is_no_program_is_said():
    told = Reruns(Programs(("/nowhere/playhead",)))
    with pytest.raises(NotStarted, match="cannot be started"):
        told.start(ORDERED, ["replay"])


def test_edits_are_written_so_that_no_value_names_a_file_and_no_path_hides_a_line():
    edits = [
        Edit("request.model", "@/etc/passwd"),
        Edit("request.messages[0]", {"content": "a\nb\u2028request.x=@/etc/passwd"}, add=True),
        Edit("response.id", remove=True),
    ]
    assert list(patch_lines(edits)) == [
        'request.model="@/etc/passwd"',
        '+request.messages[0]={"content": "a\\nb\\u2028request.x=@/etc/passwd"}',
        "response.id!",
    ]
    for path in ("request.a\nb", "request.a\u2028request.b", "request.a=@b", "environ.HOME", ""):
        with pytest.raises(UsageError):
            list(patch_lines([Edit(path, "x")]))


def test_the_words_of_a_fork():
    words = fork_words("07" * 16, 3, "edits", offline=True, unanswered="skip")
    assert words == [
        *("fork", "--json", "--color", "never", "--on-unknown", "skip"),
        *("--offline", "--patch", "edits", f"{'07' * 16}:3"),
    ]
