"""The arrows of the house: a room imports what its `dependencies` declare, and no module in a circle."""

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("semconv", "instrumentation", "exporter", "checkpoint", "replay", "analysis", "receiver", "cli")
# Libraries that a room patches when the program brings them: imported only where they already are.
PATCHED = {"instrumentation": {"httpx", "httpx2", "openai", "anthropic", "langchain_core"}}
# Declared for a program that is started, by the file that starts it; nothing imports them.
STARTED = {
    "playhead-instrumentation": "cli/playhead_cli/running/agent.py",
    "pytest": "cli/playhead_cli/demo/shell.py",
}
# `playhead_cli/demo/agents` is a link to this folder.
DEMO = ROOT / "examples"


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project_of(room: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / room / "pyproject.toml").read_text("utf-8"))["project"]


def distributions(wanted: Iterable[str]) -> set[str]:
    return {normal(re.split(r"[<>=!~\[; ]", line, maxsplit=1)[0]) for line in wanted}


def needed(room: str) -> set[str]:
    return distributions(project_of(room)["dependencies"])


def declared(room: str) -> set[str]:
    extras = project_of(room).get("optional-dependencies", {}).values()
    return needed(room) | distributions(chain.from_iterable(extras))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def everywhere(path: Path) -> Iterator[ast.AST]:
    return ast.walk(parsed(path))


def imports(path: Path) -> set[str]:
    return imported_by(everywhere(path))


def imported_by(nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


def whenever(path: Path, *, functions: bool = True) -> Iterator[ast.AST]:
    """What runs when a module is imported or used: not what only the type checker reads."""
    ahead: list[ast.AST] = [parsed(path)]
    while ahead:
        node = ahead.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not functions:
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            ahead += node.orelse
        else:
            ahead += ast.iter_child_nodes(node)


def at_start(path: Path) -> Iterator[ast.AST]:
    """What runs when a module is imported: not functions, nor what only the type checker reads."""
    return whenever(path, functions=False)


# Namespace packages (opentelemetry.*, google.*) are shared by several distributions.
NAMESPACED = {
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry.proto": "opentelemetry-proto",
    "opentelemetry.instrumentation": "opentelemetry-instrumentation",
    "opentelemetry.exporter.otlp.proto.common": "opentelemetry-exporter-otlp-proto-common",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry.exporter.otlp.proto.grpc": "opentelemetry-exporter-otlp-proto-grpc",
    "opentelemetry.semconv": "opentelemetry-semantic-conventions",
    "opentelemetry": "opentelemetry-api",
    "google.protobuf": "protobuf",
    "backports.zstd": "backports-zstd",
    "google.rpc": "googleapis-common-protos",
}

STANDARD = sys.stdlib_module_names | {"compression"}
"""Modules of the standard library; `compression` is part of it from Python 3.14 on."""


def providers(module: str, known: dict[str, list[str]]) -> set[str]:
    for prefix, distribution in NAMESPACED.items():
        if module == prefix or module.startswith(prefix + "."):
            return {distribution}
    return {normal(name) for name in known.get(module.split(".")[0], [])}


@cache
def known_packages() -> dict[str, list[str]]:
    known = {name: list(found) for name, found in packages_distributions().items()}
    for other in ROOMS:
        known[f"playhead_{other}"] = [f"playhead-{other}"]
    known["playhead"] = ["playhead-instrumentation"]
    known |= {name: ["playhead-semconv"] for name in ("playhead_core", "playhead_genai")}
    return known


def started_by(room: str) -> set[str]:
    """Distributions of which a room starts a program, by its name."""
    return {
        name
        for name, place in STARTED.items()
        if place.startswith(f"{room}/") and name.replace("-", "_") in (ROOT / place).read_text("utf-8")
    }


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_it_declares(room: str):
    known = known_packages()
    allowed = declared(room) - started_by(room) | {f"playhead-{room}"}
    undeclared: list[str] = []
    for path in sorted((ROOT / room).glob("playhead*/**/*.py")):
        for module in sorted(imports(path)):
            top = module.split(".")[0]
            if top in STANDARD or top in PATCHED.get(room, set()):
                continue
            if not providers(module, known) & allowed:
                undeclared.append(f"{path.relative_to(ROOT)} imports {module}")
    assert undeclared == []


def packages_of(module: str) -> set[str]:
    """The packages around a module, which are imported before it."""
    parts = module.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts))}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_declares_only_what_it_uses(room: str):
    known = known_packages()
    files = [
        *(ROOT / room).glob("playhead*/**/*.py"),
        *(DEMO.glob("*.py") if room == "cli" else ()),
    ]
    modules = set[str]().union(*map(imports, files))
    used = set[str]().union(*(providers(module, known) for module in modules))
    assert declared(room) - used - started_by(room) == set()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_starts_without_its_extras(room: str):
    """No entry point imports, through however many modules, what only an extra installs.

    The plugin of pytest is loaded by pytest.
    """
    project, known, modules = project_of(room), known_packages(), modules_of(room)
    extra = declared(room) - needed(room) - {f"playhead-{room}"}
    groups = {"scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    groups.pop("pytest11", None)
    begun = {place.partition(":")[0] for group in groups.values() for place in group.values()}
    begun |= {f"playhead_{room}", f"playhead_{room}.__main__"} & modules.keys()
    seen: set[str] = set()
    while begun - seen:
        name = min(begun - seen)
        seen.add(name)
        begun |= arrows(name, modules[name], modules, at_start)
        begun |= {above for one in begun for above in packages_of(one)} & modules.keys()
    found = {
        f"{name} imports {module}"
        for name in seen
        for module in imported_by(at_start(modules[name]))
        if providers(module, known) & extra
    }
    assert seen
    assert found == set()


def test_what_runs_at_the_start_of_a_module_is_told_apart(tmp_path: Path):
    path = tmp_path / "one.py"
    path.write_text(
        "import a\ntry:\n    import b\nexcept ImportError:\n    import c\n"
        "class K:\n    import d\n    def f(self):\n        import x\n"
        "if TYPE_CHECKING:\n    import y\nelse:\n    import e\n"
    )
    assert imported_by(at_start(path)) == set("abcde")


def modules_of(room: str) -> dict[str, Path]:
    """The files of a room by the name of the module."""
    found: dict[str, Path] = {}
    for path in sorted((ROOT / room).glob("playhead*/**/*.py")):
        parts = path.relative_to(ROOT / room).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def arrows(
    name: str,
    path: Path,
    modules: Mapping[str, Path],
    where: Callable[[Path], Iterable[ast.AST]] = everywhere,
) -> set[str]:
    """Modules of ``modules`` that one imports: anywhere in its file, for its types alone, too."""
    found: set[str] = set()
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in where(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            place = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{place}.{alias.name}"
                found.add(whole if whole in modules else place)
    return found & modules.keys()


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Sets of modules in which each leads back to itself, sorted."""
    reached: dict[str, set[str]] = {}
    for name in graph:
        seen: set[str] = set()
        ahead = [name]
        while ahead:
            new = graph[ahead.pop()] - seen
            seen |= new
            ahead += new
        reached[name] = seen
    found = {
        tuple(sorted(other for other in seen if name in reached[other]))
        for name, seen in reached.items()
        if name in seen
    }
    return sorted(map(list, found))


def test_circles_are_found_however_long_they_are():
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d", "f"}, "f": set[str]()}
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": {"a"}, "b": {"a"}}) == [["a"]]


def test_every_way_to_import_is_an_arrow(tmp_path: Path):
    path = tmp_path / "one.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "import json, p.whole\n"
        "from p import module, name\n"
        "from p.deep.other import function\n"
        "if TYPE_CHECKING:\n    from p.types import Type\n"
        "def f():\n    from . import beside\n    from ..lazy import g\n"
    )
    names = "p p.whole p.module p.deep.other p.types p.sub.beside p.lazy p.none".split()
    found = arrows("p.sub.one", path, dict.fromkeys(names, path))
    assert found == set(names) - {"p.none"}


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_imports_itself_in_a_circle(room: str):
    """An import in a function, or for types alone, counts: it ties two files together as well."""
    modules = modules_of(room)
    graph = {name: arrows(name, path, modules) for name, path in modules.items()}
    assert circles(graph) == []


def test_no_folder_imports_itself_in_a_circle():
    modules = {name: path for room in ROOMS for name, path in modules_of(room).items()}
    folders: dict[str, set[str]] = {}
    for name, path in modules.items():
        found = folders.setdefault(str(path.parent.relative_to(ROOT)), set())
        found |= {
            str(modules[other].parent.relative_to(ROOT))
            for other in arrows(name, path, modules, whenever)
            if modules[other].parent != path.parent
        }
    assert len(folders) > 100
    assert circles(folders) == []


def test_names_facts_and_provider_formats_import_in_one_direction():
    order = ("playhead_semconv", "playhead_core", "playhead_genai")
    modules = modules_of("semconv")
    wrong = {
        f"{name} imports {other}"
        for name, path in modules.items()
        for other in arrows(name, path, modules)
        if order.index(other.split(".")[0]) > order.index(name.split(".")[0])
    }
    assert {name.split(".")[0] for name in modules} == set(order)
    assert wrong == set()


def test_instrumentation_and_exporter_do_not_know_each_other():
    assert "playhead-exporter" not in declared("instrumentation")
    assert "playhead-instrumentation" not in declared("exporter")


def test_nobody_needs_the_command_line():
    assert [room for room in ROOMS if "playhead" in declared(room)] == []


MOST_FILES = 15
ONE_FILE_A_VERB = "cli/playhead_cli/commands"


def test_no_folder_has_more_than_fifteen_files_but_that_of_the_verbs():
    rooms = [path for room in ROOMS for path in (ROOT / room).glob("playhead*/**/")]
    folders = [path for path in (*rooms, *(ROOT / "tests" / "support").glob("**/")) if path.is_dir()]
    files = {
        str(folder.relative_to(ROOT)): len(
            [one for one in folder.glob("*.py") if one.name != "__init__.py"]
        )
        for folder in folders
    }
    assert len(files) > 50
    assert {name: count for name, count in files.items() if count > MOST_FILES} == {}
