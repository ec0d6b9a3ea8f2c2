"""A run of pytest whose tests use pytest-httpx and monkeypatch."""

import sys
import tempfile
from pathlib import Path

import pytest

TESTS = """
import asyncio
import httpx

def test_double(httpx_mock):
    httpx_mock.add_response(url="http://double/one", json={"one": 1})
    assert httpx.get("http://double/one").json() == {"one": 1}

def test_double_async(httpx_mock):
    httpx_mock.add_response(text="many", is_reusable=True)
    async def main():
        async with httpx.AsyncClient() as client:
            return await asyncio.gather(*(client.get(f"http://double/{n}") for n in range(4)))
    assert [one.text for one in asyncio.run(main())] == ["many"] * 4

def test_gone(httpx_mock):
    httpx_mock.add_exception(httpx.ReadTimeout("too slow"))
    try:
        httpx.get("http://double/")
    except httpx.ReadTimeout as error:
        assert str(error) == "too slow"

def test_patched(monkeypatch):
    monkeypatch.setattr(httpx, "get", lambda url: httpx.Response(200, text=url))
    assert httpx.get("http://double/").text == "http://double/"
"""


class Says:
    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            print(report.nodeid.rpartition("::")[2], report.outcome)


with tempfile.TemporaryDirectory() as folder:
    Path(folder, "test_it.py").write_text(TESTS)
    words = ["-p", "no:cacheprovider", "-p", "no:terminal", folder]
    print(int(pytest.main(words, plugins=[Says()])))
sys.exit(3)
