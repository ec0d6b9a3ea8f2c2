"""Names and texts use the words of the field: subject, verb, object, and no private dialect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "semconv",
    "instrumentation",
    "exporter",
    "checkpoint",
    "replay",
    "analysis",
    "receiver",
    "cli",
)
PAGES = "receiver/web/src"

DIALECT = re.compile(
    r"\b(?:nobody|whoever|whosoever|somebody|anew|thereof|by itself|of its own accord"
    r"|(?<!there )(?:is|are|was|were) (?:no|none|nothing)\b(?! longer| more)|(?:is|are|was|were) told"
    r"|was said|is said|what (?:comes|came|waits|stands|went|lies)|stands? (?:for|beside|behind)"
    r"|who (?:has|may|asks|reads|keeps))\b",
    re.IGNORECASE,
)
"""Turns of phrase that a technical writer would not use. Each has a plain one."""

RETIRED = frozenset(
    ("outlet", "funnel", "desk", "errand", "errands", "sayer", "sayers", "strand", "strands")
)
"""Words that classes, functions and modules no longer have in their names."""


def prose(path: Path) -> str:
    """The text of a page without code, which may quote anything."""
    return re.sub(r"^```.*?^```|`[^`\n]+`", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def documents() -> list[Path]:
    """What users read, with the pages made from help texts, errors, OpenAPI and docstrings."""
    return [
        ROOT / "README.md",
        *sorted(ROOT.glob("docs/**/*.md")),
        *sorted(ROOT.glob("*/ARCHITECTURE.md")),
    ]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_in_plain_english(path: Path):
    assert [match.group(0) for match in DIALECT.finditer(prose(path))] == []


def without_comments(path: Path) -> str:
    """A module of the pages without its comments."""
    return re.sub(r"/\*.*?\*/|^\s*//.*?$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_the_pages_of_the_browser_are_in_plain_english():
    files = sorted((ROOT / PAGES).rglob("*.ts*"))
    assert len(files) > 20
    texts = {
        f"{path.name}: {text}"
        for path in files
        for group in re.findall(r"\"([^\"\n]*)\"|'([^'\n]*)'|`([^`]*)`", without_comments(path))
        for text in group
        if DIALECT.search(text)
    }
    assert texts == set()


def names(path: Path) -> Iterator[str]:
    """Names of a module and of its classes and functions."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def words_of(name: str) -> set[str]:
    """The words of a name: of ``SpoolOutlet`` and of ``open_outlet``."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_words_of_names_are_found():
    assert words_of("SpoolOutlet") == {"spool", "outlet"}
    assert words_of("_open_HTTPOutlet2") == {"open", "http", "outlet"}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_has_a_retired_word(package: str):
    files = sorted((ROOT / package).glob("playhead*/**/*.py"))
    assert files
    assert {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in names(path)
        if words_of(name) & RETIRED
    } == set()
