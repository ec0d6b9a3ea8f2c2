"""The documents say what the code does."""

import ast
import functools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.answers.sdk_table import OLDEST
from support.commands import refused

from playhead_cli.app import COMMANDS
from playhead_core import errors
from playhead_core.boundaries import BOUNDARIES
from playhead_core.settings import DESCRIPTIONS, Settings, environment_name

ROOT = Path(__file__).parent.parent


def rows(document):
    """Cells of the table lines of a document, heads and rules left out."""
    lines = [line for line in (ROOT / document).read_text("utf-8").splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [
        row
        for row, rule in zip(cells, [*cells[1:], [""]], strict=True)
        if not dashes(row) and not dashes(rule)
    ]


def dashes(row):
    return set("".join(row)) == {"-"}


def tree(error):
    yield error
    for child in error.__subclasses__():
        yield from tree(child)


def shown(default):
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`" if default != "" else ""


def test_every_error_is_documented():
    told = {row[0].strip("`"): int(row[1]) for row in rows("docs/errors.md")}
    ours = [one for one in tree(errors.PlayheadError) if one.__module__ == errors.__name__]
    assert told == {one.code: one.exit_status for one in ours}


def test_every_error_says_what_to_do():
    assert [row[0] for row in rows("docs/errors.md") if len(row[2]) < 10 or len(row[3]) < 10] == []


def test_every_setting_is_documented():
    expected, defaults = [], Settings()
    for name, described in DESCRIPTIONS.items():
        variables = [environment_name(name), described.otel]
        expected.append(
            [
                f"`{name.replace('_', '-')}`" if name != "token" else "",
                ", ".join(f"`{variable}`" for variable in variables if variable),
                shown(getattr(defaults, name)),
                described.doc,
            ]
        )
    table = "\n".join(f"| {' | '.join(row)} |" for row in expected)
    assert rows("docs/configuration.md") == expected, f"docs/configuration.md should say\n{table}"


def test_the_table_of_boundaries_is_printed():
    shown_rows = [
        [
            f"`{row.name}`",
            row.level or "none",
            "yes" if row.choice == "choice" else "no",
            row.facts,
            row.without,
        ]
        for row in BOUNDARIES
    ]
    text = (ROOT / "docs/boundaries.md").read_text("utf-8")
    table = text.partition("<!-- boundaries -->\n")[2].partition("\n\n")[0].splitlines()[2:]
    printed = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert printed == shown_rows


def test_the_oldest_sdks_are_those_that_are_tried():
    text = (ROOT / "docs/explanation/recorded.md").read_text("utf-8")
    told = " ".join(text.split("<!-- oldest -->")[1].split("<!-- -->")[0].split())
    assert told == ", ".join(f"{name} {version}" for name, version in sorted(OLDEST.items()))


def test_every_make_target_has_a_comment():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^([a-zA-Z./-]+):(?!=| \w+ =)(.*)$", makefile, re.MULTILINE)
    (phony,) = [rest.split() for name, rest in targets if name == ".PHONY"]
    named = [(name, rest) for name, rest in targets if name != ".PHONY"]
    assert [name for name, rest in named if not re.search(r" ## \S", rest)] == []
    assert set(phony) == {name for name, _ in named if "/" not in name}


ELSEWHERE = sorted(ROOT.glob("*/README.md"))
"""Texts beside the code. Their commands are parsed; those of README and docs are run (tests/docs)."""


def commands(document):
    """The words of every line of a shell in a document, assignments in front left out."""
    for block in re.findall(r"^```(?:console)?\n(.*?)^```", document.read_text("utf-8"), re.M | re.S):
        for line in re.findall(r"^(?:\$ )?(.*\b(?:playhead|make) .*)$", block, re.M):
            words = shlex.split(line, comments=True)
            while words and re.match(r"[A-Z_]+=", words[0]):
                del words[0]
            if words and words[0].rpartition("/")[2] in ("playhead", "make"):
                yield [words[0].rpartition("/")[2], *words[1:]]


def test_commands_in_texts_beside_the_code_are_accepted():
    found = [(document, words) for document in ELSEWHERE for words in commands(document)]
    assert len(found) > 5
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    wrong = []
    for document, words in found:
        why = refused(words) if words[0] == "playhead" else "" if words[1] in targets else "no target"
        if why:
            wrong.append(f"{document.relative_to(ROOT)}: {' '.join(words)}: {why}")
    assert wrong == []


def test_commands_that_texts_name_are_there():
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"), *ELSEWHERE]
    named = {
        (str(document.relative_to(ROOT)), command)
        for document in documents
        for command in re.findall(r"`playhead ([a-z]+)", document.read_text("utf-8"))
    }
    assert len(named) > 100
    assert [one for one in named if one[1] not in COMMANDS] == []


@pytest.mark.acceptance  # `make style`, without which there is no `make test`, looks too
def test_generated_pages_are_what_the_code_says():
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_documents_that_sources_name_exist():
    sources = [
        path
        for room in (*ROOMS, "tests", "examples", "benchmarks")
        for path in (ROOT / room).rglob("*.py")
    ]
    named = {
        (str(source.relative_to(ROOT)), name)
        for source in sources
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", source.read_text("utf-8"))
    }
    assert len(named) > 10
    assert [one for one in named if not (ROOT / one[1]).exists()] == []


def without_code(document):
    """The text of a document without its code, in which brackets are no links."""
    return re.sub(r"^```.*?^```|`[^`\n]+`", "", document.read_text("utf-8"), flags=re.M | re.S)


def test_links_between_documents_lead_somewhere():
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/*.md")]
    dead = [
        f"{document.relative_to(ROOT)} → {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", without_code(document))
        if not (document.parent / target).exists()
    ]
    assert dead == []


ROOMS = ("semconv", "instrumentation", "exporter", "checkpoint", "replay", "analysis", "receiver", "cli")


def test_texts_about_architecture_are_short():
    most = {"ARCHITECTURE.md": 200, **{f"{room}/ARCHITECTURE.md": 100 for room in ROOMS}}
    lines = {name: len((ROOT / name).read_text("utf-8").splitlines()) for name in most}
    assert [f"{name}: {lines[name]}" for name in most if lines[name] > most[name]] == []


def test_the_paths_of_where_things_are_exist():
    text = (ROOT / "docs/explanation/where-things-are.md").read_text("utf-8")
    paths = re.findall(rf"`((?:{'|'.join(ROOMS)})/[^`]+)`", text)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_decisions_are_numbered_dated_and_have_their_four_parts():
    decisions = sorted(ROOT.glob("docs/adr/*.md"))
    assert len(decisions) <= 30, "merge decisions by topic"
    assert [int(one.name[:4]) for one in decisions] == list(range(1, len(decisions) + 1))
    for number, one in enumerate(decisions, 1):
        text = one.read_text("utf-8")
        assert text.startswith(f"# {number}. "), one.name
        assert re.search(r"\n\nStatus: accepted\n\nDate: \d{4}-\d\d-\d\d\n\n## ", text), one.name
        heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert heads == ["Context", "Decision", "Consequences", "Alternatives"], one.name


def test_the_glossary_has_few_words_each_once_in_alphabetical_order():
    words = [row[0] for row in rows("docs/glossary.md")]
    assert words == sorted(set(words), key=str.lower)
    assert len(words) <= 50


# Classes that share their name with another, and why.
SAME_NAME = {
    "State": "`query.models.operations` names its JSON after what it shows",
}


def sees(room):
    """The rooms of which files of ``room`` import something, itself included."""
    texts = [path.read_text("utf-8") for path in (ROOT / room).glob("playhead*/**/*.py")]
    found = re.findall(r"^ *(?:from|import) playhead_(\w+)", "\n".join(texts), re.MULTILINE)
    return {room, *found}


def doubles(classes, words):
    """Names of several classes, of which two can meet in a file or one is a word of the glossary.

    ``classes``: (name, room, whether it is a protocol). A protocol may have the name of a class that has
    its shape.
    """
    views = [sees(room) for room in ROOMS]
    by_name = {}
    for name, room, protocol in classes:
        by_name.setdefault(name, []).append((room, protocol))
    for name, places in by_name.items():
        rooms = [room for room, protocol in places if not protocol]
        meet = any(len(set(rooms) & view) > 1 for view in views)
        if meet or (name in words and len(rooms) > 1):
            yield name


@functools.cache
def classes_of(room):
    """(name, room, whether it is a protocol) of each public class of a room."""
    return [
        (node.name, room, any("Protocol" in ast.unparse(base) for base in node.bases))
        for path in (ROOT / room).glob("playhead*/**/*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def test_a_class_name_stands_for_one_thing():
    words = {"".join(row[0].title().split()) for row in rows("docs/glossary.md")}
    assert "Exchange" in words
    classes = [one for room in ROOMS for one in classes_of(room)]
    assert set(doubles(classes, words)) == set(SAME_NAME)


@pytest.mark.parametrize("room", ["semconv", "exporter", "checkpoint", "replay", "analysis", "receiver"])
def test_within_a_room_a_class_name_stands_for_one_thing(room):
    names = [name for name, _, protocol in classes_of(room) if not protocol]
    assert names
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_doubles_of_names_are_found():
    one = ("A", "semconv", False)
    assert list(doubles([one, ("A", "cli", False)], ())) == ["A"]
    assert list(doubles([one, ("A", "cli", True)], ())) == []
    apart = [("A", "instrumentation", False), ("A", "cli", False)]
    assert (list(doubles(apart, ())), list(doubles(apart, ("A",)))) == ([], ["A"])
