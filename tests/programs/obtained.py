"""The programs that were not written for this project, as they come out of published archives."""

from __future__ import annotations

import re
import tarfile
import textwrap
import zipfile
from dataclasses import dataclass
from pathlib import Path

ARCHIVES = Path(__file__).parents[2] / ".venv-programs" / "sources"
PYTHON = ARCHIVES.parent / "bin" / "python"

_FENCED = re.compile(r"^([ \t]*)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Program:
    """A program in an archive."""

    package: str
    path: str
    """Inside the archive, below its top folder."""
    containing: str = ""
    """Where ``path`` is a text: the first fenced block of Python that contains this is the program."""

    def __str__(self) -> str:
        return f"{self.package}:{Path(self.path).stem}"

    def unpacked(self, folder: Path) -> Path:
        """The program's file, below ``folder``, with the files that came with it."""
        top = _unpack(self.package, folder)
        file = top / self.path
        if not self.containing:
            return file
        blocks = (textwrap.dedent(found[2]) for found in _FENCED.finditer(file.read_text()))
        program = folder / f"{file.stem.lower()}_block.py"
        program.write_text(next(block for block in blocks if self.containing in block))
        return program


PROGRAMS = [
    Program("openai", "examples/demo.py"),
    Program("openai", "examples/streaming.py"),
    Program("openai", "examples/parsing_tools.py"),
    Program("openai", "examples/parsing_stream.py"),
    Program("anthropic", "examples/messages_stream.py"),
    Program("anthropic", "examples/tools_runner.py"),
    Program("anthropic", "examples/structured_outputs_streaming.py"),
    Program("anthropic", "examples/thinking_stream.py"),
    Program("openai_agents", "examples/agent_patterns/parallelization.py"),
    Program("openai_agents", "examples/agent_patterns/agents_as_tools.py"),
    Program("openai_agents", "examples/agent_patterns/output_guardrails.py"),
    Program("openai_agents", "examples/handoffs/message_filter_streaming.py"),
    Program("openai_agents", "examples/memory/sqlite_session_example.py"),
    Program("pydantic_ai_examples", "bank_support.py"),
    Program("pydantic_ai_examples", "medical_agent_delegation.py"),
    Program("langgraph_prebuilt", "README.md", "create_react_agent"),
    Program("langgraph_prebuilt", "langgraph/prebuilt/chat_agent_executor.py", "graph.stream(inputs"),
]


def _unpack(package: str, folder: Path) -> Path:
    """Unpack the archive of ``package``; its top folder."""
    [archive] = (
        one
        for one in ARCHIVES.iterdir()
        if re.match(re.escape(package) + r"-\d", one.name.replace("-", "_", package.count("-")))
    )
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
        return folder / package
    with tarfile.open(archive) as sdist:
        sdist.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")
