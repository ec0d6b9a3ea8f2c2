"""What a tape may name: nothing that it brings is imported, called or runs otherwise."""

import dataclasses
import enum
import json
import sys
from typing import Any

import pytest

from playhead_core.facts import ErrorRecord
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.patching import plain_classes
from playhead_instrumentation.recorder.exceptions import again

RAN: list[str] = []


class Armed:
    """A class of the program whose every own method tells that it ran."""

    def __new__(cls, *args: Any):
        RAN.append("new")
        return super().__new__(cls)

    def __init__(self, *args: Any):
        RAN.append("init")

    def __setattr__(self, name: str, value: Any):
        RAN.append("setattr")
        object.__setattr__(self, name, value)

    @property
    def text(self) -> str:
        return self.__dict__["text"]

    @text.setter
    def text(self, value: str):
        RAN.append("setter")


class TakesState(Armed):
    def __setstate__(self, state: Any):
        RAN.append("setstate")


class HasEnd:
    def __del__(self):
        RAN.append("del")


class Looks(enum.Enum):
    ONE = 1

    @classmethod
    def _missing_(cls, value: object):
        RAN.append("missing")


class ArmedError(Exception):
    def __new__(cls, *args: Any):
        RAN.append("error")
        return super().__new__(cls, *args)

    def __setattr__(self, name: str, value: Any):
        RAN.append("error.setattr")


@dataclasses.dataclass
class Data:
    command: Any


def named(form: str, module: str, qualname: str, value: Any) -> Any:
    return {"$type": form, "class": [module, qualname], "value": value}


def read(plain: Any) -> Any:
    return values.read(json.dumps(plain).encode())


LIST = named("class", "builtins", "list", None)
HOSTILE = {
    "map": named("object", "builtins", "map", [[named("class", "builtins", "eval", None), ["1"]], None]),
    "enum as a call": named("enum", "subprocess", "Popen", ["true"]),
    "enum of a function": named("enum", "os", "system", "true"),
    "attrgetter": named("object", "operator", "attrgetter", [["system"], None]),
    "methodcaller": named("object", "operator", "methodcaller", [["system", "true"], None]),
    "partial": named("object", "functools", "partial", [[LIST], None]),
    "Popen without its begin": named("object", "subprocess", "Popen", [[], {"args": "true"}]),
    "class to be called": named("class", "subprocess", "Popen", None),
    "module that is not here": named("enum", "antigravity", "x", 1),
    "tuple that is none": named("tuple", "subprocess", "Popen", []),
    "exception that is none": named("exception", "subprocess", "Popen", [[], None, None, False]),
    "form that is not known": {"$type": "os.system", "value": "true"},
    "its own state": named("object", __name__, "TakesState", [[], {"x": 1}]),
    "an end": named("object", __name__, "HasEnd", [[], None]),
    "a value that the enumeration lacks": named("enum", __name__, "Looks", 7),
}


@pytest.mark.parametrize("plain", HOSTILE.values(), ids=HOSTILE)
def test_what_a_tape_names_is_a_placeholder(plain: Any):
    modules = set(sys.modules)
    RAN.clear()
    made = read({"in": [plain]})["in"][0]
    assert type(made) in (values.Placeholder, values.PlaceholderError)
    assert RAN == [] and "antigravity" not in set(sys.modules) - modules
    if isinstance(made, values.Placeholder):
        with pytest.raises(AttributeError, match="no plain class"):
            made.anything()
        with pytest.raises(values.Unkept):
            values.kept(made)


def test_no_code_of_a_class_runs_when_its_object_is_made():
    RAN.clear()
    made = read(named("object", __name__, "Armed", [[], {"text": "x", "__class__": "y"}]))
    error = read(named("exception", __name__, "ArmedError", [["x"], {"why": 1}, None, False]))
    assert type(made) is Armed and made.text == "x"
    assert type(error) is ArmedError and error.args == ("x",) and error.__dict__ == {"why": 1}
    assert RAN == []


def test_a_data_class_is_made_and_what_it_holds_is_checked_too():
    made = read(named("object", __name__, "Data", [[], {"command": HOSTILE["class to be called"]}]))
    assert type(made) is Data and type(made.command) is values.Placeholder


def test_a_value_that_is_too_deep_is_refused():
    with pytest.raises(ValueError, match="nested too deep"):
        values.read(b"[" * 100_000 + b"]" * 100_000)


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(3,)", "(-1,)"])
def test_an_array_is_as_large_as_it_says(shape: str):
    import base64

    import numpy

    whole = base64.b64decode(json.loads(values.kept(numpy.arange(2, dtype="u1")))["value"])
    told = whole.replace(b"(2,)", shape.encode())
    size = int.from_bytes(told[8:10], "little") + len(told) - len(whole)
    data = told[:8] + size.to_bytes(2, "little") + told[10:]
    with pytest.raises(ValueError, match="no array"):
        read({"$type": "numpy.array", "value": base64.b64encode(data).decode()})


def test_an_exception_of_a_module_that_is_not_here_is_not_imported():
    error = again(ErrorRecord("antigravity", "Gone", "why", []), RuntimeError)
    assert type(error) is RuntimeError and str(error) == "Gone: why"
    assert "antigravity" not in sys.modules
    assert type(again(ErrorRecord("os", "system", "true", ["true"]), RuntimeError)) is RuntimeError


def test_a_name_that_leads_through_an_object_without_attributes_is_not_found():
    assert plain_classes.defined("os", "sep.join") is None
    assert plain_classes.defined("nowhere", "x.y") is None
