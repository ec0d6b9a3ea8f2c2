"""The documents say what the code does."""

import re
from dataclasses import fields
from pathlib import Path

from playhead_semconv import errors
from playhead_semconv.settings import Settings, environment_name

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
    expected = []
    for field in fields(Settings):
        names = [environment_name(field.name), field.metadata["otel"]]
        expected.append(
            [
                f"`{field.name.replace('_', '-')}`" if field.name != "token" else "",
                ", ".join(f"`{name}`" for name in names if name),
                shown(field.default),
                field.metadata["doc"],
            ]
        )
    table = "\n".join(f"| {' | '.join(row)} |" for row in expected)
    assert rows("docs/configuration.md") == expected, f"docs/configuration.md should say\n{table}"


def test_every_make_target_has_a_comment():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^([a-zA-Z./-]+):(?!=)(.*)$", makefile, re.MULTILINE)
    (phony,) = [rest.split() for name, rest in targets if name == ".PHONY"]
    named = [(name, rest) for name, rest in targets if name != ".PHONY"]
    assert [name for name, rest in named if not re.search(r" ## \S", rest)] == []
    assert set(phony) == {name for name, _ in named if "/" not in name}


def test_links_between_documents_lead_somewhere():
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]
    dead = [
        f"{document.relative_to(ROOT)} → {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text("utf-8"))
        if not (document.parent / target).exists()
    ]
    assert dead == []
