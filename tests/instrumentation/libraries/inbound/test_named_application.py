"""An application is found by the name on its tape, and the name is never evaluated."""

import sys
from pathlib import Path

import pytest

from playhead_core.errors import ReplayFailed
from playhead_instrumentation.replayer.service.named_application import (
    application_at,
    require_importable,
)

PROGRAM = """
import functools
import os
import subprocess
from os import system

import httpx
import playhead

calls = []

def serve(environ, start_response):
    pass

def create_app(title="x", **options):
    calls.append((title, options))
    return serve

class Site:
    def __init__(self):
        self.app = serve

    @playhead.run
    def work(self):
        pass

    def other(self):
        pass

site = Site()
wrapped = functools.partial(serve, 1)
runs = functools.partial(system, "true")

@playhead.run
def marked():
    pass

@functools.wraps(marked)
def around():
    return marked()

def unmarked():
    pass
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "offered.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    import offered  # pyright: ignore[reportMissingImports]

    yield offered
    del sys.modules["offered"]


@pytest.mark.parametrize(
    "path",
    [
        "serve",
        "wrapped",
        "site.app",
        "create_app()",
        "create_app('a')",
        "create_app(title='a', debug=True)",
        "Site().app",
    ],
)
def test_what_servers_accept_is_found(module, path: str):
    found = application_at(module, path, marked=False)
    assert found in (module.serve, module.wrapped)


@pytest.mark.parametrize("path", ["marked", "around", "site.work", "Site().work"])
def test_a_marked_function_is_found(module, path: str):
    assert callable(application_at(module, path, marked=True))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "system",
        "os.system",
        "subprocess.run",
        "subprocess.Popen",
        "os.abort()",
        "runs",
        "open",
        "httpx.post('http://[::1]:1')",
        "httpx._client.os.getcwd()",
        "__import__('os')",
        "__builtins__",
        "__loader__.load_module('this')",
        "serve.__globals__",
        "site.__class__",
        "calls.clear()",
        "create_app(os.getcwd())",
        "create_app(*calls)",
        "create_app(**{})",
        "create_app(f'{os}')",
        "create_app(", "serve, os", "serve if os else os", "[serve][0]", "(lambda: serve)()",
        "(x := serve)",
        "calls.append(1)",
        "'%s' % os",
        "(" * 5000,
        "serve\0",
    ],
)  # fmt: skip
def test_nothing_else_is_called(module, path: str):
    with pytest.raises(ReplayFailed):
        application_at(module, path, marked=False)
    assert module.calls == []


@pytest.mark.parametrize("path", ["unmarked", "serve", "site.other", "system", "os.abort", "calls"])
def test_what_is_not_marked_is_no_run(module, path: str):
    with pytest.raises(ReplayFailed):
        application_at(module, path, marked=True)


def test_a_name_that_leads_nowhere_is_told(module):
    with pytest.raises(ReplayFailed, match=r"offered has no site.missing: the application is not there"):
        application_at(module, "site.missing", marked=False)


@pytest.mark.parametrize(
    "name",
    ["os", "this", "antigravity", "os.path", "sys", "playhead_core.facts", "", ".x", "a/b", "a b"],
)
def test_no_module_of_the_standard_library_is_imported(name: str):
    with pytest.raises(ReplayFailed):
        require_importable(name)


def test_modules_of_the_program_are_imported(module):
    for name in ("offered", "httpx", "nowhere.at_all", "__main__"):
        require_importable(name)
