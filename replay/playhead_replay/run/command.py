"""The recorded command, read from the first fact of its tape."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from playhead_core.errors import ScriptChanged, TapeMissing
from playhead_core.facts import Fact, digest_of
from playhead_core.file_names import real_name
from playhead_core.process.environment import folders_of, may_be_restored, readable, text_of_word
from playhead_core.tape.protocols import Tape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_OPTION = re.compile(
    r"-[Ob]+|-W[^.\0]+|"  # no category by its path: it would be imported
    r"-X(dev|faulthandler|int_max_str_digits|no_debug_ranges|tracemalloc|utf8|warn_default_encoding)(=\d+)?"
)
"""Options of the interpreter that a tape may set."""


@dataclass(frozen=True, slots=True)
class Command:
    """How the recorded process was started."""

    script: str
    """Path of the script, ``-m MODULE``, or ``-c``."""
    arguments: tuple[str, ...]
    """As in `sys.argv`: bytes that are not UTF-8 are lone surrogates."""
    cwd: str
    interpreter: str
    """Path of the Python that ran it."""
    options: tuple[str, ...] = ()
    """Options of the interpreter, such as ``-O``."""
    python_version: str = ""
    hash_seed: str = ""
    """PYTHONHASHSEED, or ``random``."""
    script_digest: str = ""
    """BLAKE3 of the script, hex; empty if the recorder could not read it."""
    level: str = "causal"
    environment: dict[str, str] = field(default_factory=dict[str, str])
    """Variables that the recorder kept."""
    source: str = ""
    """Source code of the program, if it was given on the command line."""
    folders: dict[str, str] = field(default_factory=dict[str, str])
    """Folders of the recorded process: cwd, prefix, home, …"""

    @classmethod
    def of_tape(cls, tape: Tape) -> Command:
        """`TapeMissing` if the tape does not say how its process was started."""
        for fact in tape.facts():
            if fact.name == e.PLAYHEAD_PROCESS_START:
                return cls.of_fact(fact)
            break
        raise TapeMissing(
            "the run has no tape: nothing says how its process was started",
            cause="its spans came from a program that playhead did not record",
            hint="playhead record SCRIPT",
        )

    @classmethod
    def of_fact(cls, fact: Fact) -> Command:
        """From a process-start fact."""
        return cls.of_attributes(fact.attributes)

    @classmethod
    def of_attributes(cls, at: Mapping[str, Any]) -> Command:
        """From the ``playhead.run.*`` attributes of a process-start fact or of a run root."""
        words = at.get(a.PLAYHEAD_RUN_ARGV, [])
        argv = [text_of_word(word) for word in words]
        script = real_name(str(at.get(a.PLAYHEAD_RUN_SCRIPT, ""))) or (argv[0] if argv else "")
        return cls(
            script=script,
            arguments=tuple(argv[1:]),
            cwd=real_name(str(at.get(a.PLAYHEAD_RUN_CWD, ""))),
            interpreter=str(at.get(a.PLAYHEAD_RUN_INTERPRETER, "")),
            options=tuple(
                one
                for one in map(str, at.get(a.PLAYHEAD_RUN_INTERPRETER_OPTIONS, []))
                if _OPTION.fullmatch(one)
            ),
            python_version=str(at.get(a.PLAYHEAD_RUN_PYTHON_VERSION, "")),
            hash_seed=str(at.get(a.PLAYHEAD_RUN_HASH_SEED, "")),
            script_digest=str(at.get(a.PLAYHEAD_RUN_SCRIPT_DIGEST, "")),
            level=str(at.get(a.PLAYHEAD_RUN_LEVEL, "causal")),
            environment=_environment(at.get(a.PLAYHEAD_RUN_ENVIRONMENT, [])),
            source=str(at.get(a.PLAYHEAD_RUN_SOURCE, "")),
            folders=folders_of([str(one) for one in at.get(a.PLAYHEAD_RUN_FOLDERS, [])]),
        )

    def attributes(self) -> dict[str, Any]:
        """The ``playhead.run.*`` attributes of a process-start fact for this command."""
        return {
            a.PLAYHEAD_RUN_ARGV: [self.script, *self.arguments],
            a.PLAYHEAD_RUN_SCRIPT: self.script,
            a.PLAYHEAD_RUN_CWD: self.cwd,
            a.PLAYHEAD_RUN_INTERPRETER: self.interpreter,
            a.PLAYHEAD_RUN_LEVEL: self.level,
            a.PLAYHEAD_RUN_SOURCE: self.source,
        }

    def from_elsewhere(self, *, live: bool) -> Command:
        """The command as it may be taken from somebody else: local Python, harmless variables only."""
        kept = {
            name: value for name, value in self.environment.items() if may_be_restored(name, live=live)
        }
        return replace(self, interpreter="", environment=kept)

    @property
    def is_module(self) -> bool:
        """Whether it was started as ``-m MODULE``."""
        return self.script.startswith("-m ")

    def words(self) -> list[str]:
        """The command line after the interpreter."""
        start = ["-m", self.script[3:].strip()] if self.is_module else [self.script]
        start += [self.source] if self.source else []
        return [*start, *self.arguments]

    def shown(self) -> list[str]:
        """The same for display, see `readable`."""
        return [readable(word) for word in self.words()]

    def __str__(self) -> str:
        return shlex.join(self.shown())

    def script_path(self, cwd: Path) -> Path | None:
        """Path of the script when the command is started in ``cwd``; None for a module."""
        return None if self.is_module or self.source or not self.script else cwd / self.script

    def require_unchanged(self, cwd: Path) -> None:
        """`ScriptChanged` if the script in ``cwd`` is missing or differs from the recorded one."""
        if self.script in ("", "-", "-c") and not self.source:
            raise ScriptChanged(
                "the program was not a file, but came from the command line or stdin",
                hint="put it into a file: playhead record SCRIPT",
            )
        path = self.script_path(cwd)
        if path is None:
            return
        if not path.is_file():
            raise ScriptChanged(
                f"{self.script} is not in {cwd}",
                hint="name the folder of the program: playhead replay RUN --cwd FOLDER",
            )
        if self.script_digest and digest_of(path.read_bytes()).hex() != self.script_digest:
            raise ScriptChanged(
                f"{path.name} differs from the tape's digest",
                cause=f"tape: {self.script_digest[:16]}, now: {digest_of(path.read_bytes()).hex()[:16]}",
                hint="replay it all the same and see where it diverges: playhead replay RUN --force",
            )


def _environment(pairs: list[Any]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for pair in pairs:
        name, _, value = text_of_word(pair).partition("=")
        kept[name] = value
    return kept
