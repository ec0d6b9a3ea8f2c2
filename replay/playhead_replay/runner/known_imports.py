"""What programs import, known from earlier replays, so that it is imported before the next one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from playhead_replay.runner.process_start import Start

PROGRAMS = 64
"""Most programs that are remembered; those used least recently are forgotten."""


class Imports(msgspec.Struct):
    """What one program imports."""

    modules: list[str] = []
    """Names of installed modules, in the order in which their imports began."""
    left_out: list[str] = []
    """Packages whose import leaves a trace, so that each replay imports them itself."""


@dataclass(slots=True)
class KnownImports:
    """What programs import, by interpreter, folder and beginning of the command line."""

    programs: dict[str, Imports] = field(default_factory=dict[str, Imports])
    changed: bool = False
    """Whether something else is known than what `read` was given."""

    @classmethod
    def read(cls, stored: Any) -> KnownImports:
        """Of what `stored` gave; knows nothing where it is something else."""
        try:
            return cls(msgspec.convert(stored, dict[str, Imports]))
        except msgspec.ValidationError:
            return cls()

    def stored(self) -> dict[str, Any]:
        """As plain values, to be kept until the next session."""
        return msgspec.to_builtins(self.programs)

    def of(self, start: Start) -> Imports:
        """What the program of ``start`` imports, as far as it is known."""
        return self.programs.get(_name(start), Imports())

    def note(self, start: Start, modules: Iterable[str], left_out: Iterable[str]) -> None:
        """The program of ``start`` has imported ``modules``; ``left_out`` may not be imported ahead."""
        found, name = Imports(list(modules), list(left_out)), _name(start)
        before = self.programs.pop(name, None)
        self.programs[name] = found
        while len(self.programs) > PROGRAMS:
            del self.programs[next(iter(self.programs))]
        if before is None or _sets(before) != _sets(found):
            self.changed = True


def _name(start: Start) -> str:
    return "\n".join((start.interpreter, str(start.folder), *start.program[:2]))


def _sets(imports: Imports) -> tuple[set[str], set[str]]:
    return set(imports.modules), set(imports.left_out)
