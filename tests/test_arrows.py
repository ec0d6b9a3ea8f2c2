"""The arrows of the house: a room imports only what its `dependencies` declare."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("semconv", "instrumentation", "exporter", "checkpoint", "replay", "receiver")
# Libraries that a room patches when the program brings them: imported only where they already are.
PATCHED = {"instrumentation": {"httpx", "httpx2", "openai", "anthropic"}}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(room: str) -> set[str]:
    project = tomllib.loads((ROOT / room / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in project.get("optional-dependencies", {}).values():
        wanted += extra
    return {normal(re.split(r"[<>=!~\[; ]", line, maxsplit=1)[0]) for line in wanted}


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


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
    "google.rpc": "googleapis-common-protos",
}


def providers(module: str, known: dict[str, list[str]]) -> set[str]:
    for prefix, distribution in NAMESPACED.items():
        if module == prefix or module.startswith(prefix + "."):
            return {distribution}
    return {normal(name) for name in known.get(module.split(".")[0], [])}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_it_declares(room: str):
    known = {name: list(found) for name, found in packages_distributions().items()}
    for other in ROOMS:
        known[f"playhead_{other}"] = [f"playhead-{other}"]
    known["playhead"] = ["playhead-instrumentation"]
    allowed = declared(room) | {f"playhead-{room}"}
    undeclared: list[str] = []
    for path in sorted((ROOT / room).glob("playhead*/**/*.py")):
        for module in sorted(imports(path)):
            top = module.split(".")[0]
            if top in sys.stdlib_module_names or top in PATCHED.get(room, set()):
                continue
            if not providers(module, known) & allowed:
                undeclared.append(f"{path.relative_to(ROOT)} imports {module}")
    assert undeclared == []


def test_instrumentation_and_exporter_do_not_know_each_other():
    assert "playhead-exporter" not in declared("instrumentation")
    assert "playhead-instrumentation" not in declared("exporter")
