"""Every block of every page is a text of its language, and says whether it is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.blocks import Block, blocks_of, commands_of, typed
from docs.pages import PAGES, READERS, README, name_of
from docs.parsing import problem_of
from docs.readers import ROOT
from docs.terminal import lacking

BENCHMARKS = ROOT / "docs" / "benchmarks.md"
INSTALLING = ROOT / "docs" / "install.md"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_blocks_of_a_page_can_be_read(page: Path):
    assert [problem for block in blocks_of(page) if (problem := problem_of(block))] == []


def test_most_blocks_are_run():
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language == "console"]
    left_out = [block for block in blocks if block.not_run]
    assert len(blocks) > 60 and len(left_out) < len(blocks) / 6


def test_readers_are_of_pages_that_are_there():
    assert set(READERS) <= {name_of(page) for page in PAGES}


@pytest.mark.parametrize("name", ["five-minutes", "first-incident"])
def test_a_script_of_commands_says_how_many_they_are(name: str):
    page = ROOT / "docs" / "start" / f"{name}.md"
    said = re.search(r"\*\*(\d+) commands\*\*", page.read_text("utf-8"))
    assert said and int(said[1]) == len(list(typed(page)))


def test_the_figures_of_the_readme_are_those_of_the_benchmarks():
    readme, measured = README.read_text("utf-8"), BENCHMARKS.read_text("utf-8")
    table = readme.partition("| added, µs")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| a ")]
    figures = [figure for row in rows for figure in re.findall(r"\d[\d,]*", row.partition(" | ")[2])]
    assert len(figures) == 18
    found = re.findall(r"\+([\d,]+\.\d)", measured.partition("## Many at once")[0])
    told = [float(one.replace(",", "")) for one in found]
    wrong = [
        one for one in figures if not any(abs(float(one.replace(",", "")) - it) <= 0.5 for it in told)
    ]
    assert wrong == []


def test_the_sizes_of_the_readme_are_those_of_the_text_about_installing():
    told = re.findall(r"\d+ MB", README.read_text("utf-8"))
    assert len(told) == 3
    assert [one for one in told if one not in INSTALLING.read_text("utf-8")] == []


def test_the_readme_is_short():
    assert len(README.read_text("utf-8").splitlines()) < 130


PAGE = """
# A page

```console
$ echo one \\
> two
one two
$ false # it fails: exit 1
```

<!-- not run: a cluster is needed -->
```console title="elsewhere"
$ kubectl get pods
```

```python title="a.py"
x = 1
```

<!-- not run: said of something else -->

Text between.

```json
{}
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    place = tmp_path / "page.md"
    place.write_text(PAGE)
    return place


def test_blocks_are_found_with_what_is_said_of_them(page: Path):
    first, second, third, fourth = blocks_of(page)
    assert first == Block(page, 5, "console", "", first.text, "")
    assert (second.title, second.not_run) == ("elsewhere", "a cluster is needed")
    assert (third.language, third.title, third.text) == ("python", "a.py", "x = 1\n")
    assert (fourth.language, fourth.not_run) == ("json", "")


def test_commands_are_found_with_what_they_print(page: Path):
    echo, false = typed(page)
    assert (echo.text, echo.line, echo.prints) == ("echo one \\\ntwo", 5, ["one two"])
    assert (false.status, false.prints) == (1, [])


def test_a_block_that_begins_with_output_is_refused(page: Path):
    page.write_text("```console\noutput\n```\n")
    with pytest.raises(ValueError, match=":2"):
        commands_of(blocks_of(page)[0])


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ if\n"),
        ("console", "$ playhead ls --no-such-option\n"),
        ("console", "$ playhead golden no-such-verb\n"),
        ("console", "$ PLAYHEAD_TOKEN=x playhead frobnicate\n"),
        ("python", "def\n"),
        ("javascript", "const = 1\n"),
        ("json", "{\n"),
        ("toml", "a =\n"),
        ("yaml", "a: [\n"),
        ("cobol", "MOVE\n"),
    ],
)
def test_what_is_wrong_is_found(page: Path, language: str, text: str):
    page.write_text(f"<!-- not run: it is wrong -->\n```{language}\n{text}```\n")
    assert problem_of(blocks_of(page)[0])


@pytest.mark.parametrize(
    ("prints", "said", "missing"),
    [
        (["1 passed in 2.1s"], "x\n1 passed in 12.84s\n", ""),
        (["…", "identical (exit 0)"], "exact 5/5\nidentical (exit 0)\n", ""),
        (["2 passed in 2.1s"], "1 passed in 2.1s\n", "2 passed in 2.1s"),
        (["b", "a"], "a\nb\n", "a"),
        (["For … a coat."], "For Oslo pack a coat.\n", ""),
        (["at http://127.0.0.1:8000 now"], "at http://127.0.0.1:45 now\n", ""),
    ],
)
def test_what_a_page_shows_is_looked_for_in_order(prints: list[str], said: str, missing: str):
    assert lacking(prints, said) == missing
