"""Programs in broken environments: what each needs is set up before it starts, or it does it itself."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

PRELUDE: Final = '''
import json, os, sys

def ask(text="hi"):
    """One request to a model, with the standard library alone."""
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["MODEL_PORT"]))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer["choices"][0]["message"]["content"]

def report(*values):
    """Where streams are broken: a line in a file."""
    with open(os.environ["REPORT"], "a") as file:
        print(*values, file=file)

def attempt(what, *arguments):
    """What a call gives or raises, as text."""
    try:
        return repr(what(*arguments))
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

def writes():
    report(ask())
    for stream in (sys.stdout, sys.stderr):
        report(attempt(print, "x" * 10, stream) if stream is None else attempt(stream.write, "line\\n"))
        report(stream and attempt(stream.flush))
    report(attempt(os.write, 1, b"raw"), attempt(os.write, 2, b"raw"))
    report(attempt(lambda: sys.stdin.read()))

def files():
    print(ask())
    with open("out.txt", "w") as file:
        file.write("x" * 100)
    print(open("out.txt").read()[:3], sorted(os.listdir(".")))
'''


@dataclass(frozen=True, slots=True)
class Odd:
    """One case: a program and what is wrong around it."""

    name: str
    program: str = "print(ask())"
    before: str = ""
    """Python that runs in the process that then becomes the program, or ``playhead record``."""
    inside: str = ""
    """Python that runs in the process that then becomes the interpreter of the program."""
    options: tuple[str, ...] = ()
    """Options of the interpreter."""
    command: tuple[str, ...] = ()
    """A command to run instead of the program."""
    environ: Mapping[str, str] = field(default_factory=dict)
    streams: Literal["pipes", "terminal", "closed terminal"] = "pipes"
    always: bool = False
    """Whether the suite runs it, not only the acceptance."""

    @property
    def source(self) -> str:
        """The script."""
        return PRELUDE + self.program


def _cases() -> list[Odd]:
    tables = [
        tomllib.loads(path.read_text("utf-8")) for path in sorted(Path(__file__).parent.glob("*.toml"))
    ]
    return [Odd(name, **case) for table in tables for name, case in table.items()]


ODD: Final = _cases()
