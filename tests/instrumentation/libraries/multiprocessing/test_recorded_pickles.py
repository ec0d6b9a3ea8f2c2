"""Recorded messages of `multiprocessing`: what is loaded, and what is refused by name."""

from __future__ import annotations

import collections
import copyreg
import datetime
import decimal
import enum
import functools
import pathlib
import pickle
import shutil
import sys
import uuid
from concurrent.futures import process as futures
from dataclasses import dataclass
from multiprocessing import pool
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import pytest

from playhead_instrumentation.libraries.multiprocessing.recorded_pickles import refusal


class Colour(enum.Enum):
    RED = 1


class Order(NamedTuple):
    number: int


@dataclass
class Item:
    name: str


class Refused(Exception):
    pass


class Plain:
    def __init__(self) -> None:
        self.items = [Item("kettle")]

    def work(self, one: int) -> int:
        return one


def work(one: int) -> int:
    return one


class Calls:
    """Pickled as a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


def dumped(value: Any) -> bytes:
    return bytes(ForkingPickler.dumps(value))


def traced(error: Exception) -> Any:
    try:
        raise error
    except Exception as raised:
        return pool.ExceptionWithTraceback(raised, raised.__traceback__)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"n": 1, b"x": (1.5, True, {2, 3}, frozenset((4,)), bytearray(b"y"))},
        [datetime.datetime.now(datetime.UTC), decimal.Decimal("1.5"), uuid.uuid4(), pathlib.Path("a")],
        [collections.OrderedDict(a=1), collections.deque((1,)), collections.Counter("aab")],
        [Colour.RED, Order(81), Item("kettle"), Plain(), Refused("no"), KeyError(1)],
        (0, 1, pool.mapstar, ((work, (1,)),), {}),  # type: ignore[attr-defined]
        (0, 1, len, ("abc",), {}),
        (0, 1, functools.partial(work, 1), (), {}),
        (0, 1, Plain().work, (1,), {}),
        (0, 1, (False, traced(ValueError("no")))),
        futures._CallItem(0, work, (1,), {}),  # type: ignore[attr-defined]
        futures._ResultItem(0, exception=Refused("no"), result=None),  # type: ignore[attr-defined]
        Item,
    ],
)
def test_messages_of_programs_are_loaded(value: Any):
    assert refusal(dumped(value)) == ""
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert refusal(pickle.dumps(value, protocol)) == ""


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"#CHALLENGE#{sha256}abc", b"cos\nsys", b"plain text", b"[0]"]
)
def test_bytes_that_are_no_pickle_are_no_danger(data: bytes):
    assert refusal(data) == ""


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Calls(eval, "1"), "builtins.eval"),
        (Calls(exec, "1"), "builtins.exec"),
        (Calls(shutil.rmtree, "x"), "shutil.rmtree"),
        ((0, 1, shutil.rmtree, ("x",), {}), "shutil.rmtree"),
        ((0, 1, functools.partial(shutil.rmtree, "x"), (), {}), "shutil.rmtree"),
        ({"deep": [{"n": (Calls(__import__, "os"),)}]}, "builtins.__import__"),
        (Calls(getattr, work, "__globals__"), "builtins.getattr"),
        (Calls(getattr, Plain, "work"), "builtins.getattr"),
        (Calls(getattr, Item("kettle"), "__class__"), "builtins.getattr"),
        (Calls(work, 1), f"{__name__}.work"),
        (Calls(sys.exit, 3), "sys.exit"),
        (Calls(Plain), f"{__name__}.Plain"),
        (Calls(copyreg.add_extension, "os", "system", 7), "copyreg.add_extension"),
        (Calls(futures.ProcessPoolExecutor, 1), "concurrent.futures.process.ProcessPoolExecutor"),
    ],
)
def test_a_message_that_calls_or_names_anything_else_is_refused_by_name(value: Any, name: str):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert name in refusal(pickle.dumps(value, protocol))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"cos\nsystem\n(S'id'\ntR.", "os.system"),  # protocol 0
        (b"(S'id'\nios\nsystem\n.", "os.system"),  # INST
        (b"(cos\nsystem\nS'id'\no.", "os.system"),  # OBJ
        (
            b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R\x8c",
            "builtins.eval",
        ),  # cut short after
        (b"\x80\x04\x8c\x08__main__\x8c\tos.system\x93\x8c\x02id\x85R.", "__main__.os.system"),
        (b"\x80\x04\x8c\x0anot_loaded\x8c\x03abc\x93.", "not_loaded.abc"),
        (b"\x80\x04\x8c\x04math\x8c\x0a__loader__\x93.", "math.__loader__"),
        (b"P1\n.", "pickle.persistent_load"),
    ],
)
def test_a_handmade_message_is_refused_by_name(data: bytes, name: str):
    assert name in refusal(data)
    assert "not_loaded" not in sys.modules


def test_a_cached_extension_is_not_taken():
    copyreg.add_extension("posix", "system", 199)
    try:
        data = b"\x80\x02\x82\xc7X\x02\x00\x00\x00id\x85R."
        pickle.loads(b"\x80\x02\x82\xc7.")  # now the real function is in the cache
        assert "posix.system" in refusal(data)
    finally:
        copyreg.remove_extension("posix", "system", 199)
