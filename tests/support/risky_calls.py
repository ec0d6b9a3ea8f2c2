"""Finds the places in source files that could run, import, look up or write what data names."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Place: TypeAlias = tuple[str, str, str]
"""Kind, file, and function; the function is empty at the level of a module."""

USES = {
    "code": "eval exec compile builtins.eval builtins.exec builtins.compile code.* codeop.*",
    "import": """__import__ builtins.__import__ importlib.import_module importlib.reload
        importlib.util.find_spec importlib.util.spec_from_file_location
        importlib.machinery.PathFinder.find_spec importlib.machinery.SourceFileLoader
        pkgutil.* runpy.* zipimport.*""",
    "entry points": """importlib.metadata.entry_points pkg_resources.*
        opentelemetry.util._importlib_metadata.entry_points""",
    "unpickle": """pickle.load pickle.loads pickle.Unpickler _pickle.* cPickle.* marshal.load
        marshal.loads shelve.* dill.* cloudpickle.* joblib.* jsonpickle.* yaml.load yaml.unsafe_load
        yaml.full_load yaml.Loader yaml.UnsafeLoader""",
    "process": """subprocess.run subprocess.Popen subprocess.call subprocess.check_call
        subprocess.check_output subprocess.getoutput subprocess.getstatusoutput os.system os.popen
        os.startfile os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe
        os.posix_spawn os.posix_spawnp os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve
        os.spawnvp os.spawnvpe pty.spawn asyncio.create_subprocess_exec asyncio.create_subprocess_shell
        webbrowser.open""",
    "attribute": "operator.attrgetter operator.methodcaller",
    "format": "string.Template string.Formatter jinja2.*",
    "codec": """codecs.lookup codecs.getdecoder codecs.getencoder codecs.getincrementaldecoder
        codecs.open zoneinfo.ZoneInfo locale.setlocale""",
    "ctypes": "ctypes.CDLL ctypes.PyDLL ctypes.pythonapi ctypes.util.find_library",
}
"""By kind, what is found wherever it is used, called or not."""

LOGS = ("log", "_log", "logger", "logging")
WRITERS = ("write_text", "write_bytes")
WRITES = ("O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC", "flags")
NAMED = {"getattr": 1, "setattr": 1, "delattr": 1}
"""Functions that take a name, and the position of the name."""


def places(root: Path, rooms: tuple[str, ...]) -> Counter[Place]:
    """How often each place occurs in the packages below ``root``."""
    found: Counter[Place] = Counter()
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            if not {"tests", "node_modules", ".venv"} & set(path.relative_to(root).parts):
                found += _of_file(path, path.relative_to(root).as_posix())
    return found


def found_in(source: str, file: str = "x.py") -> Counter[Place]:
    """How often each place occurs in the text of one file."""
    finder = _Finder(file)
    finder.visit(ast.parse(source))
    return finder.found


def _of_file(path: Path, file: str) -> Counter[Place]:
    return found_in(path.read_text("utf-8"), file)


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str) -> None:
        self.found: Counter[Place] = Counter()
        self._file = file
        self._within: list[str] = []
        self._imported: dict[str, str] = {}

    def _note(self, kind: str) -> None:
        self.found[kind, self._file, ".".join(self._within)] += 1

    def _visit_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for one in node.decorator_list:
            self.visit(one)
        self._within.append(node.name)
        for one in ast.iter_child_nodes(node):
            if one not in node.decorator_list:
                self.visit(one)
        self._within.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_definition

    def visit_Import(self, node: ast.Import) -> None:
        for one in node.names:
            top = one.name.partition(".")[0]
            self._imported[one.asname or top] = one.name if one.asname else top
            if _kind_of(f"{one.name}.x") == "unpickle":
                self._note("unpickle")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for one in node.names:
            self._imported[one.asname or one.name] = f"{node.module}.{one.name}"

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and (kind := _kind_of(self._dotted(node))):
            self._note(kind)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        kind = _kind_of(self._dotted(node)) or ("import" if node.attr == "exec_module" else "")
        if kind:
            self._note(kind)
        else:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        for kind in self._kinds_of_call(node):
            self._note(kind)
        if any(one.arg == "shell" and not _is_constant(one.value, False) for one in node.keywords):
            self._note("process")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        right = node.right
        is_number = isinstance(right, ast.Call) and self._dotted(right.func) == "len"
        many = isinstance(right, ast.Tuple | ast.Dict | ast.Call) and not is_number
        if isinstance(node.op, ast.Mod) and many and not isinstance(node.left, ast.Constant | ast.BinOp):
            self._note("format")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        reads = isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Constant)
        if reads and self._dotted(node.value) == "sys.modules":
            self._note("module by name")
        self.generic_visit(node)

    def _kinds_of_call(self, node: ast.Call) -> Iterator[str]:
        name = self._dotted(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name
        first = node.args[0] if node.args else None
        at = NAMED.get(name)
        if at is not None and not self._is_delegation(node) and not _is_literal(node.args[at:]):
            yield "attribute"
        if name == "sys.modules.get" and not _is_literal(node.args):
            yield "module by name"
        if isinstance(node.func, ast.Attribute):
            is_text = isinstance(node.func.value, ast.Constant | ast.JoinedStr)
            if last in ("format", "format_map") and not is_text:
                yield "format"
            if last in ("encode", "decode") and _is_encoding(first):
                yield "codec"
            if (
                self._dotted(node.func.value) in LOGS
                and last not in LOGS
                and len(node.args) > 1
                and not _is_literal(node.args)
            ):
                yield "format"
        if last in WRITERS or _opens_to_write(name, last, node):
            yield "write"

    def _is_delegation(self, node: ast.Call) -> bool:
        """Whether it is in a ``__getattr__``, which gives its caller what the caller names."""
        return self._within[-1:] == ["__getattr__"] and len(node.args) == 2

    def _dotted(self, node: ast.expr) -> str:
        """The name of what is used, with its module; empty for an attribute of anything else."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            top = node.value
            while isinstance(top, ast.Attribute):
                top = top.value
            if isinstance(top, ast.Name) and top.id in self._imported:
                return f"{self._dotted(node.value)}.{node.attr}"
        return ""


_KINDS = {name: kind for kind, names in USES.items() for name in names.split()}


def _kind_of(name: str) -> str:
    found = _KINDS.get(name) or (_KINDS.get(f"{name.partition('.')[0]}.*") if "." in name else None)
    return found or ""


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _is_literal(nodes: list[ast.expr]) -> bool:
    return bool(nodes) and isinstance(nodes[0], ast.Constant)


def _is_encoding(node: ast.expr | None) -> bool:
    """Whether the first argument of ``encode`` or ``decode`` may be the name of a codec."""
    if node is None or isinstance(node, ast.Constant):
        return False
    return "encoding" in ast.unparse(node).lower() or "charset" in ast.unparse(node).lower()


def _opens_to_write(name: str, last: str, node: ast.Call) -> bool:
    if name == "os.open":
        return len(node.args) > 1 and any(one in ast.unparse(node.args[1]) for one in WRITES)
    if last not in ("open", "fdopen"):
        return False
    at = 1 if name in ("open", "io.open", "os.fdopen", "gzip.open") else 0
    given = [one.value for one in node.keywords if one.arg == "mode"] or node.args[at : at + 1]
    return any(
        isinstance(one, ast.Constant)
        and isinstance(one.value, str)
        and bool(set(one.value) & set("wax+"))
        and len(one.value) <= 4
        for mode in given
        for one in ast.walk(mode)
    )
