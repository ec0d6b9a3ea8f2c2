"""Writes the modules `attributes`, `events` and `values` of `playhead_semconv` from the registry.

`make generate` runs it. With `--check` it writes nothing and fails if a file differs from the registry.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent / "playhead_semconv"
HEADS = {
    "attributes": '"""Attribute names. Generated from the registry by `make generate`; do not edit."""',
    "events": '"""Event names. Generated from the registry by `make generate`; do not edit."""',
    "values": '"""Known values. Generated from the registry by `make generate`; do not edit."""',
}


def constant(name: str, value: str, brief: str, indent: str = "") -> list[str]:
    """A constant and its docstring, as lines."""
    python = name.upper().replace(".", "_").replace("-", "_")
    return [f"{indent}{python} = {json.dumps(value)}", f'{indent}"""{brief}"""']


def members(attribute: dict[str, Any]) -> list[str]:
    """A class that holds an attribute's known values, as lines."""
    words = attribute["id"].replace(".", "_").split("_")
    lines = ["", "", f"class {''.join(word.capitalize() for word in words)}:"]
    lines += [f'    """Known values of {attribute["id"]}: {attribute["brief"]}"""', ""]
    for member in attribute["type"]["members"]:
        lines += constant(member["id"], member["value"], member["brief"], "    ")
    return lines


def render() -> dict[str, str]:
    """Module name → source."""
    lines: dict[str, list[str]] = {module: [head] for module, head in HEADS.items()}
    lines["attributes"].append("")
    lines["events"].append("")
    for path in sorted((HERE / "registry").glob("*.yaml")):
        document: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
        for group in document["groups"]:
            if group["type"] == "event":
                lines["events"] += constant(group["name"], group["name"], group["brief"])
            for attribute in group.get("attributes", []):
                if "id" not in attribute:
                    continue
                lines["attributes"] += constant(attribute["id"], attribute["id"], attribute["brief"])
                if isinstance(attribute["type"], dict):
                    lines["values"] += members(attribute)
    return {module: "\n".join(text) + "\n" for module, text in lines.items()}


def main() -> int:
    """Write, or with ``--check`` compare; exit status."""
    stale: list[str] = []
    for module, source in render().items():
        path = HERE / f"{module}.py"
        if "--check" in sys.argv:
            if not path.exists() or path.read_text("utf-8") != source:
                stale.append(path.name)
        else:
            path.write_text(source, "utf-8")
    if stale:
        print(f"{', '.join(stale)} differ from the registry; run: make generate", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
