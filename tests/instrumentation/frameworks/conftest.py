import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from support.servers.scripted import ScriptedServer
from support.starting.home import Home

from playhead_replay import read_tape_file
from playhead_replay.run.spans import Span, grow
from playhead_semconv import attributes as a

APART = (Path(sys.prefix, "apart-langgraph"), Path(sys.prefix, "apart-frameworks"))


def outline(spans: list[Span], *shown: str) -> list[str]:
    """Names of spans, indented below those around them, and the attributes ``shown`` where they are set."""
    lines: list[str] = []
    for span in spans:
        found = [str(span.attributes[name]) for name in shown if name in span.attributes]
        lines.append(" ".join([span.name, *found]))
        lines += [f"  {line}" for line in outline(span.children, *shown)]
    return lines


def operations(spans: list[Span]) -> list[Span]:
    """The forest without spans of HTTP requests; what begins at once is in the order of names."""
    found: list[Span] = []
    for span in spans:
        span.children = operations(span.children)
        if a.HTTP_REQUEST_METHOD not in span.attributes:
            found.append(span)
    return found


@dataclass
class Recorded:
    """A program that was recorded, and is replayed without its provider."""

    home: Home
    stdout: str

    @cached_property
    def spans(self) -> list[Span]:
        """What the program did: the spans below the root of its run."""
        (root,) = self.home.run("last").roots
        return operations(root.children)

    def named(self, name: str) -> Span:
        (found,) = (one for root in self.spans for one in root.walk() if one.name == name)
        return found

    def replayed(self) -> tuple[list[str], list[str]]:
        """Outlines of the spans that begin in the recording and in its replay, which is identical."""
        kept = self.home.folder / "now.tape"
        status, report = self.home.report("last", "--keep", kept)
        assert (status, report["verdict"]) == (0, "identical"), report["divergences"]
        tapes = (self.home.run("last").tapes[0], read_tape_file(kept).tape)
        before, now = (
            sorted(outline(operations(grow([], tape.facts())))) for tape in tapes
        )
        return before, now


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Recorded]]:
    """Record a program: ``record(program, path, answer, level, **environ)``."""
    with ScriptedServer() as provider:

        def recorded(
            program: str, path: str, answer: Any, level: str = "exchanges", **environ: str
        ) -> Recorded:
            folder = tmp_path_factory.mktemp("framework")
            provider.on(f"/{folder.name}{path}", answer, repeat=True)
            made = {
                "OPENAI_BASE_URL": f"{provider.url}/{folder.name}",
                "OPENAI_API_KEY": "k",
                "PYTHONPATH": ":".join(map(str, APART)),
                **environ,
            }
            home = Home(folder, made)
            (folder / "agent.py").write_text(program)
            done = home.playhead("record", "--level", level, "agent.py")
            assert done.returncode == 0, done.stderr
            assert "Error in" not in done.stderr  # what LangChain says of a handler that fails
            return Recorded(home, done.stdout)

        yield recorded
