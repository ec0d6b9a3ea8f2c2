"""Find inputs of a program that the tape does not contain, in its source, with line and advice.

Only findings that nearly always matter are reported: a false alarm about an ordinary program costs more
than a missed case.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playhead_core.process.module_coverage import READ, WRAP, seen, unseen

CALLS = {
    "os.getloadavg": ("the load of the machine", READ),
    "os.times": ("processor times", READ),
    "resource.getrusage": ("processor times", READ),
    "time.process_time": ("processor time", READ),
    "time.process_time_ns": ("processor time", READ),
    "time.thread_time": ("processor time", READ),
    "time.thread_time_ns": ("processor time", READ),
    "time.clock_gettime": ("this clock", "use time.time() or time.monotonic()"),
    "time.clock_gettime_ns": ("this clock", "use time.time_ns() or time.monotonic_ns()"),
    "uuid.getnode": ("the address of the network card", READ),
    "sys.getrefcount": ("reference counts", "do not let the program depend on them"),
    "gc.get_objects": ("the objects of the process", "do not let the program depend on them"),
    "tracemalloc.take_snapshot": ("memory figures", "do not let the program depend on them"),
    "tracemalloc.get_traced_memory": ("memory figures", "do not let the program depend on them"),
    "signal.alarm": ("when the signal comes", "use a timeout of asyncio or of the client"),
    "signal.setitimer": ("when the signal comes", "use a timeout of asyncio or of the client"),
    "select.select": ("what a socket gives", WRAP),
    "select.poll": ("what a socket gives", WRAP),
    "select.epoll": ("what a socket gives", WRAP),
    "socket.socket": ("what a socket gives", WRAP),
    "socket.create_connection": ("what a socket gives", WRAP),
    "ctypes.CDLL": ("what a foreign function returns", WRAP),
    "ctypes.cdll.LoadLibrary": ("what a foreign function returns", WRAP),
    "multiprocessing.RawArray": ("what another process writes there", "use Array, which has a lock"),
    "multiprocessing.RawValue": ("what another process writes there", "use Value, which has a lock"),
    "threading.get_native_id": ("numbers that the system gives", "use the thread's name"),
}
"""Calls whose result is not on the tape: the missing data, and the remedy."""

SEEDS = {"torch": "torch.manual_seed", "tensorflow": "tensorflow.random.set_seed"}
"""Libraries with a random generator of their own, and the call that seeds it."""


@dataclass(frozen=True, slots=True)
class Import:
    """An import statement of a program."""

    module: str
    line: int

    @property
    def seen(self) -> str:
        """How its traffic is recorded; empty if it is not."""
        return seen(self.module)


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A place in a program that brings in input which the tape does not hold."""

    what: str
    """The module or function."""
    file: str
    line: int
    missing: str
    """The missing data."""
    hint: str


def sources_of(script: Path) -> list[Path]:
    """Return the file of a program and the modules next to it that it imports, without duplicates.

    SyntaxError if the script is not valid Python; invalid modules are left out.
    """
    root = script.resolve().parent
    found: list[Path] = []
    waiting = [script]
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        try:
            names = [one.module for one in imports_of(path)]
        except (SyntaxError, OSError, ValueError):
            if path == script:
                raise
            continue
        found.append(path)
        for name in names:
            base = script.parent.joinpath(*name.split("."))
            for candidate in (base.with_suffix(".py"), base / "__init__.py"):
                if candidate.is_file() and candidate.resolve().is_relative_to(root):
                    waiting.append(candidate)
    return found


def imports_of(script: Path) -> Iterator[Import]:
    """Yield the imports of a file, in order. SyntaxError if it is not valid Python."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(script.read_bytes(), str(script))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.setdefault(node.module, node.lineno)
    for module, line in sorted(found.items(), key=lambda item: item[1]):
        yield Import(module, line)


def uncovered(script: Path) -> Iterator[Uncovered]:
    """Places whose input is not on the tape, file by file, in order of lines."""
    for path in sources_of(script):
        name = path.name if path == script else str(path.relative_to(script.parent))
        places = [*_modules(path, name), *_calls(path, name)]
        yield from sorted(places, key=lambda one: one.line)


def _modules(path: Path, name: str) -> Iterator[Uncovered]:
    for one in imports_of(path):
        found = unseen(one.module)
        if found is not None:
            yield Uncovered(one.module, name, one.line, found.missing, found.advice)


def _calls(path: Path, name: str) -> Iterator[Uncovered]:
    tree = ast.parse(path.read_bytes(), str(path))
    names = _imported_names(tree)
    called: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called.setdefault(_dotted(node.func, names), node.lineno)
            if _reads_proc(node):
                yield Uncovered("/proc", name, node.lineno, "what the kernel says there", READ)
        elif isinstance(node, ast.FormattedValue) and _is_id(node.value):
            yield Uncovered(
                "id()", name, node.lineno, "addresses of objects", "number the objects, or name them"
            )
    for function, line in called.items():
        if function in CALLS:
            missing, hint = CALLS[function]
            yield Uncovered(function, name, line, missing, hint)
    for one in imports_of(path):
        seed = SEEDS.get(one.module)
        if seed is not None and seed not in called:
            yield Uncovered(one.module, name, one.line, "its random numbers", f"call {seed}(0)")


def _imported_names(tree: ast.AST) -> dict[str, str]:
    """Return the dotted name that each imported name of a file refers to."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or top] = top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The dotted name of a called function, resolved with the imports; empty for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *parts])


def _reads_proc(node: ast.Call) -> bool:
    function = node.func
    called = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    first = node.args[0] if node.args else None
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return called in ("open", "Path") and is_text and str(first.value).startswith("/proc/")  # type: ignore[union-attr]


def _is_id(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "id"
