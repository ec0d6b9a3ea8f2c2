"""Runs a program as the interpreter does: as ``__main__``, with its own arguments and search path."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, Final

import msgspec

from playhead_core.errors import UsageError
from playhead_instrumentation.patching.attribution.owners import is_ours


class Program(msgspec.Struct, frozen=True):
    """A program to run: a script, or a module where ``is_module``."""

    name: str
    arguments: tuple[str, ...]
    is_module: bool = False
    source: str | None = None
    """Source code of the program, where it is given on the command line."""

    @classmethod
    def of_words(cls, words: list[str]) -> Program:
        """From the arguments of an interpreter. Raises `UsageError` where they name no program."""
        if words[:1] == ["--"]:
            words = words[1:]
        if words[:1] == ["-m"] and len(words) > 1:
            return cls(words[1], tuple(words[2:]), True)
        if words[:1] == ["-c"] and len(words) > 1:
            return cls("-c", tuple(words[2:]), source=words[1])
        if not words or words[0].startswith("-"):
            raise UsageError("no program to run", hint="playhead record agent.py")
        return cls(words[0], tuple(words[1:]))

    @classmethod
    def of_interpreter(cls) -> Program:
        """What this interpreter was told to run; without a name if it was told nothing.

        While ``sitecustomize`` runs, ``sys.argv`` is not complete yet; ``sys.orig_argv`` is.
        """
        words = sys.orig_argv[1 + len(interpreter_options()) :]
        if words[:1] == ["-m"] and len(words) > 1:
            return cls(words[1], tuple(words[2:]), True)
        if words[:1] == ["-c"]:
            return cls("-c", tuple(words[2:]), source=words[1] if len(words) > 1 else None)
        return cls(words[0], tuple(words[1:])) if words else cls("", ())

    @property
    def script(self) -> str:
        """The program in the form of the tape: a path or ``-m MODULE``."""
        return f"-m {self.name}" if self.is_module else self.name

    def words(self) -> list[str]:
        """The program and its arguments; empty if there is no program."""
        return [self.name, *self.arguments] if self.name else []

    def run(self) -> None:
        """Run the program to its end.

        `SystemExit` passes through. Any other exception is printed as by the interpreter, without our
        frames, and becomes `SystemExit`. `KeyboardInterrupt` is printed too but passes through, so that
        the interpreter ends by the signal.
        """
        code, main = self.loaded()
        sys.modules["__main__"] = main
        status, failure = None, None
        try:
            exec(code, main.__dict__)
        except SystemExit as leaving:
            status = leaving.code
        except BaseException as error:
            status, failure = 1, error
        if failure is not None:
            # No exception is handled here, or one of the program's hook would have it as its context.
            _report(failure)
        if isinstance(failure, KeyboardInterrupt):
            sys.excepthook = _say_nothing
            raise failure
        # Through `sys.exit`, where the recorder of the exit status sees it.
        sys.exit(status)

    def loaded(self, name: str = "__main__") -> tuple[CodeType, ModuleType]:
        """The code of the program, and the module with that ``name`` in which it is to run.

        Where there is no such program: prints the message of the interpreter and raises `SystemExit`.
        """
        main = ModuleType(name)
        names: dict[str, Any] = main.__dict__
        if self.is_module:
            _put_first(os.getcwd())
            spec, code = _module(self.name)
            path = spec.origin or ""
            names.update(__spec__=spec, __loader__=spec.loader, __package__=spec.parent)
            names["__file__"] = path
            sys.argv = [path, *self.arguments]
            return code, main
        if self.source is not None:
            _put_first("")
            names.update(__builtins__=__builtins__)
            sys.argv = [self.name, *self.arguments]
            return self._compiled(self.source, "<string>"), main
        path = self.name if os.path.isabs(self.name) else os.path.join(os.getcwd(), self.name)
        _put_first(os.path.dirname(os.path.realpath(path)))
        try:
            source = Path(path).read_bytes()
        except OSError as problem:
            said = f"can't open file {path!r}: [Errno {problem.errno}] {problem.strerror}"
            sys.stderr.write(f"{sys.executable}: {said}\n")
            sys.exit(2)
        names.update(__file__=path, __builtins__=__builtins__, __cached__=None)
        sys.argv = [self.name, *self.arguments]
        return self._compiled(source, path), main

    @staticmethod
    def _compiled(source: str | bytes, path: str) -> CodeType:
        try:
            return compile(source, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            error = error.with_traceback(None)
            sys.last_type, sys.last_value, sys.last_traceback = type(error), error, None
            sys.excepthook(type(error), error, None)
            sys.exit(1)


def _module(name: str) -> tuple[ModuleSpec, CodeType]:
    import runpy  # imported late: a recording of a running interpreter does not need it

    finder: Any = runpy
    try:
        _, spec, code = finder._get_module_details(name, finder._Error)
    except finder._Error as problem:
        sys.exit(f"{sys.executable}: {problem}")
    return spec, code


def _put_first(folder: str) -> None:
    """Set ``sys.path[0]`` as the interpreter does; ours is the folder in which ``-m`` was found."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _say_nothing(*_: object) -> None:
    """No-op exception hook, for an exception that has already been printed."""


_display: Final = sys.excepthook


def _report(error: BaseException) -> None:
    """Print an exception as the interpreter does when it ends the program (`PyErr_PrintEx`)."""
    inside = _without_ours(error.__traceback__)
    error = error.with_traceback(inside)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, inside
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        sys.stderr.write("sys.excepthook is missing\n")
        hook = _display
    try:
        hook(type(error), error, inside)
    except SystemExit:
        raise
    except BaseException as problem:
        of_hook = problem.with_traceback(_without_ours(problem.__traceback__))
    else:
        return
    sys.stderr.write("Error in sys.excepthook:\n")
    _display(type(of_hook), of_hook, of_hook.__traceback__)
    sys.stderr.write("\nOriginal exception was:\n")
    _display(type(error), error, inside)


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without frames of playhead."""
    frames: list[TracebackType] = []
    while trace is not None:
        if not is_ours(trace.tb_frame):
            frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for one in reversed(frames):
        kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return kept


def interpreter_options() -> list[str]:
    """The words of this interpreter's command line before the program."""
    words, size = sys.orig_argv[1:], 0
    while size < len(words) and words[size].startswith("-") and words[size] not in ("-m", "-c", "-"):
        size += 2 if words[size] in ("-W", "-X", "--check-hash-based-pycs") else 1
    return words[:size]
