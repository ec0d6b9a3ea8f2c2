import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from support.servers.scripted import ScriptedServer
from support.starting.home import PATIENCE_S, Home

from playhead_replay import read_tape_file
from playhead_replay.run.spans import Span, grow
from playhead_semconv import attributes as a

APART = (Path(sys.prefix, "apart-langgraph"), Path(sys.prefix, "apart-frameworks"))

LAUNCHERS = (("playhead record", "strict"), ("opentelemetry-instrument", "exchanges"))
"""What starts a program, and its default level."""


def outline(spans: list[Span], *shown: str) -> list[str]:
    """Names of spans, indented below those around them, with the attributes ``shown`` that they have."""
    lines: list[str] = []
    for span in spans:
        found = [str(span.attributes[name]) for name in shown if name in span.attributes]
        lines.append(" ".join([span.name, *found]))
        lines += [f"  {line}" for line in outline(span.children, *shown)]
    return lines


def names(spans: list[Span]) -> list[Any]:
    """Names of spans with those of their children, whatever their order."""
    return sorted([span.name, *names(span.children)] for span in spans)


def operations(spans: list[Span]) -> list[Span]:
    """The forest without spans of HTTP requests."""
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

    def at(self, *path: str) -> dict[str, Any]:
        """Attributes and error of the span at the end of a path of names: the first of each name."""
        spans, found = self.spans, None
        for name in path:
            found = next(one for one in spans if one.name == name)
            spans = found.children
        assert found is not None
        return {**found.attributes, **({"error": found.error} if found.error else {})}

    def replayed(self) -> tuple[list[Any], list[Any]]:
        """Names of the spans that begin in the recording and in its replay, which is identical."""
        kept = self.home.folder / "now.tape"
        status, report = self.home.report("last", "--keep", kept)
        assert (status, report["verdict"]) == (0, "identical"), report["divergences"]
        tapes = (self.home.run("last").tapes[0], read_tape_file(kept).tape)
        before, now = (names(operations(grow([], tape.facts()))) for tape in tapes)
        return before, now


def instrumented(home: Home, level: str) -> subprocess.CompletedProcess[str]:
    """Run `agent.py` as OpenTelemetry starts programs, and store what the spool holds."""
    done = subprocess.run(
        [Path(sys.executable).with_name("opentelemetry-instrument"), sys.executable, "agent.py"],
        env={**home.environ, "PLAYHEAD_LEVEL": level, "PLAYHEAD_ENDPOINT": "http://127.0.0.1:9"},
        cwd=home.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    pushed = home.playhead("spool", "push", "--all")
    assert pushed.returncode == 0, pushed.stderr
    return done


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Recorded]]:
    """Record a program: ``record(program, paths, answer, level, files, launcher, **environ)``."""
    with ScriptedServer() as provider:

        def recorded(
            program: str,
            paths: str,
            answer: Any,
            level: str = "exchanges",
            files: Mapping[str, str] = MappingProxyType({}),
            launcher: str = "playhead record",
            **environ: str,
        ) -> Recorded:
            folder = tmp_path_factory.mktemp("framework")
            for path in paths.split():
                provider.on(f"/{folder.name}{path}", answer, repeat=True)
            made = {
                "OPENAI_BASE_URL": f"{provider.url}/{folder.name}",
                "OPENAI_API_KEY": "k",
                "PYTHONPATH": ":".join(map(str, APART)),
                **environ,
            }
            home = Home(folder, made)
            for name, text in {"agent.py": program, **files}.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
                (folder / name).chmod(0o755)
            if launcher == "opentelemetry-instrument":
                done = instrumented(home, level)
            else:
                done = home.playhead("record", "--level", level, "agent.py")
            assert done.returncode == 0, done.stderr
            assert "Error in" not in done.stderr  # what LangChain says of a handler that fails
            return Recorded(home, done.stdout)

        yield recorded
