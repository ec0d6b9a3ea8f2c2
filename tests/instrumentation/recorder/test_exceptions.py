"""Exceptions on a tape: of which class they are raised again."""

from __future__ import annotations

from playhead_core.errors import AskRejected
from playhead_core.facts import ErrorRecord
from playhead_instrumentation.recorder.exceptions import again, is_rejection, record_of


def made(name: str) -> type[Exception]:
    class Expired(Exception):
        made_for = name

    return Expired


def test_a_class_that_was_made_in_a_function_is_found_while_it_is_there():
    classes = [made("first"), made("last")]
    error = again(record_of(classes[1]("late", 3), str), OSError)
    assert (type(error), error.args) == (classes[1], ("late", 3))


def test_a_class_that_nobody_has_made_is_replaced():
    error = again(ErrorRecord(__name__, "made.<locals>.Gone", "late"), OSError)
    assert type(error) is OSError


class Made:
    """No exception."""

    def __init__(self, *_: object) -> None:
        raise AssertionError("it was made")


class Odd(Exception):
    def __new__(cls, *_: object):
        return "no exception"


def test_nothing_but_exceptions_is_made_of_plain_arguments():
    for record in (
        ErrorRecord(__name__, "Made", "x"),
        ErrorRecord("subprocess", "Popen", "true", [["touch", "canary"]]),
        ErrorRecord("antigravity", "X", "x"),
        ErrorRecord(__name__, "Odd", "x"),
        ErrorRecord("builtins", "BaseExceptionGroup", "x", ["x", [{}]]),
    ):
        assert type(again(record, OSError)) is OSError, record
    assert again(ErrorRecord("builtins", "ValueError", "x", [{}, b""]), OSError).args == ("x",)


def test_our_own_errors_keep_the_name_under_which_tapes_know_them():
    record = record_of(AskRejected("no", hint="wait"), str)
    assert (record.module, record.qualname) == ("playhead_semconv.errors", "AskRejected")
    assert is_rejection(record)
    assert type(again(record, RuntimeError)) is AskRejected
