"""The README and the pages, read from top to bottom: every command that they say is typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from docs.blocks import blocks_of
from docs.pages import PAGES, README, name_of, reader_of
from docs.readers import ROOT

ALONE = Path(__file__).with_name("alone.py")
SHORT = ("docs/how-to/languages.md",)
"""The page that the suite reads."""
READ = [
    pytest.param(page, id=name_of(page), marks=() if name_of(page) in SHORT else pytest.mark.acceptance)
    for page in PAGES
    if any(one.language in ("console", "python") for one in blocks_of(page))
]


def read(page: Path, *, fresh: bool = False) -> subprocess.CompletedProcess[str]:
    """Have a page read, where nobody else listens; a reader who installs needs the network.

    ``fresh``: nothing is installed but Python.
    """
    fresh = fresh or reader_of(page).installs
    alone = [] if fresh else [sys.executable, str(ALONE)]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")}
    return subprocess.run(
        [*alone, sys.executable, "-m", "docs", str(page), *(["--fresh"] if fresh else [])],
        cwd=ROOT,
        env={**bare, "PYTHONPATH": str(ROOT / "tests")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.acceptance
@pytest.mark.timeout(900)
def test_the_readme_is_true_where_nothing_is_installed():
    done = read(README, fresh=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", READ)
def test_a_page_is_true(page: Path):
    done = read(page)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$ false\n", "ends with 1"),
        ("$ true # exit 1\n", "ends with 0"),
        ("$ echo one\ntwo\n", "does not print 'two'"),
    ],
)
def test_a_page_that_is_not_true_is_found_out(tmp_path: Path, text: str, said: str):
    page = tmp_path / "page.md"
    page.write_text(f"```console\n$ echo first\n{text}```\n")
    done = read(page)
    assert done.returncode == 1
    assert said in done.stdout and "page.md:3" in done.stdout


def test_a_reader_has_one_terminal_and_as_many_more_as_a_page_says(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        '```console\n$ cd /\n$ X=1\n```\n```console title="second"\n$ echo up; cat\nup\n```\n'
        '```text title="a.txt"\nhello\n```\n```console\n$ echo $X $PWD $(cat ~/../work/a.txt)\n'
        "1 / hello\n```\n```python\nprint('hi')\n```\n"
    )
    done = read(page)
    assert done.returncode == 0, done.stdout
