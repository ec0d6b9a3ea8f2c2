"""Exceptions that cross a boundary: converted for the tape, and raised again at a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeGuard

from playhead_core import errors
from playhead_core.facts import ErrorRecord
from playhead_instrumentation.patching.plain_classes import exception_named

OWN_DOING = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
"""Exceptions that the program or its user causes: they are no answer of the world."""

THROWN: Final = frozenset((("gevent.timeout", "Timeout"), ("greenlet", "GreenletExit")))
"""Modules and names of exceptions that the program throws into greenlets."""

OWN_DOING_NAMES: Final = THROWN.union((cls.__module__, cls.__qualname__) for cls in OWN_DOING)
"""Modules and names of both."""

PLAIN = (str, int, float, type(None))
"""Types of exception arguments that are recorded and used to create the exception again."""

STORED_MODULE = "playhead_semconv.errors"
"""Module of our own errors as tapes name it, whatever its name is today."""

REJECTION = STORED_MODULE, errors.AskRejected.__qualname__


def stored_module(cls: type[BaseException]) -> str:
    """Return the module of an exception class as tapes name it."""
    return STORED_MODULE if cls.__module__ == errors.__name__ else cls.__module__


def record_of(error: BaseException, scrub: Callable[[str], str]) -> ErrorRecord:
    """``error`` as it goes on tape. ``scrub`` removes credentials from its text. Never raises."""
    cls = type(error)
    try:
        message = scrub(str(error))
    except Exception:
        message = ""
    plain: list[Any] = []
    for value in error.args:
        if isinstance(value, str):
            plain.append(scrub(value))
        elif isinstance(value, PLAIN):
            plain.append(value)
        else:
            plain = []
            break
    return ErrorRecord(stored_module(cls), cls.__qualname__, message, plain)


def is_own_doing(record: ErrorRecord | None) -> bool:
    """Whether the program or its user caused a recorded end."""
    return record is not None and (record.module, record.qualname) in OWN_DOING_NAMES


def is_thrown(error: BaseException) -> bool:
    """Whether the program has thrown this exception into a greenlet."""
    return (type(error).__module__, type(error).__qualname__) in THROWN


def is_rejection(record: ErrorRecord | None) -> TypeGuard[ErrorRecord]:
    """Whether an operator or a rule has rejected what was asked, so that it did not go out."""
    return record is not None and (record.module, record.qualname) == REJECTION


def name_of(record: ErrorRecord) -> str:
    """See `ErrorRecord.error_type`."""
    return record.error_type


def again(record: ErrorRecord, otherwise: type[Exception]) -> BaseException:
    """The recorded exception, of its own class, or of ``otherwise`` if that cannot be made.

    Nothing is imported and nothing but a class of exceptions is called: a tape may name anything.
    """
    module = errors.__name__ if record.module == STORED_MODULE else record.module
    cls: Any = exception_named(module, record.qualname)
    if cls is None or not issubclass(cls, BaseException):
        return otherwise(f"{record.qualname}: {record.message}")
    arguments = record.args if all(isinstance(one, PLAIN) for one in record.args) else []
    arguments = arguments or ([record.message] if record.message else [])
    error: Any = None
    try:
        error = cls(*arguments)
    except Exception:
        with suppress(Exception):
            error = cls.__new__(cls)
            error.args = tuple(arguments)
    if isinstance(error, BaseException):
        return error
    return otherwise(f"{record.qualname}: {record.message}")
