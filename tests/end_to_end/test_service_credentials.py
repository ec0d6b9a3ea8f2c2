"""Requests whose credentials the tape withholds: who replays or forks them gives these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starting.home import Home
from support.starting.services import RecordedService, home_with, under_pytest

from playhead_cli.demo.provider import Provider

SECRET = "the-right-one-5"
HEADER = ("--header", f"Authorization: Bearer {SECRET}")
SERVICES = {
    "chat_service.py": ("-m", "uvicorn", "chat_service:app", "--port", "0"),
    "shop_service.py": ("shop_service.py",),
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


def asked(folder: Path, provider: Provider, program: str) -> Home:
    """A home in which a request with a credential was answered."""
    home = home_with(folder, provider, program)
    with RecordedService(home, *SERVICES[program]) as service:
        headers = {"authorization": f"Bearer {SECRET}"}
        assert service.client.post("/guarded", headers=headers).status_code == 200
    return home


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("chat_service.py", 403),
        pytest.param("shop_service.py", 401, marks=pytest.mark.acceptance),
    ],
)
def test_a_credential_is_given_to_a_replay(
    tmp_path: Path, provider: Provider, program: str, status: int
):
    home = asked(tmp_path, provider, program)
    code, report = home.report("last")
    assert (code, report["first_divergence"]["what"]) == (1, "inbound response to POST /guarded")
    name = report["run"]
    assert (
        f"POST /guarded is answered with {status}: it came with authorization, which the tape does not"
        " hold; give it: --header 'authorization: …'"
    ) in report["notes"]
    code, report = home.report(name, *HEADER)
    assert (code, report["divergences"], report["notes"]) == (0, [], [])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> tuple[Home, str]:
    """A home in which a request with a credential was answered, and the name of its run."""
    home = asked(tmp_path_factory.mktemp("shop"), provider, "shop_service.py")
    return home, home.runs()[0]["name"]


def test_a_credential_is_given_to_a_fork_and_not_kept(guarded: tuple[Home, str]):
    shop, name = guarded
    done = shop.playhead("fork", f"{name}:1")
    assert "give it: --header 'authorization: …'" in done.stderr
    done = shop.playhead("fork", f"{name}:1", *HEADER)
    assert (done.returncode, "give it" in done.stderr) == (0, False)
    assert shop.run("last").requests[0].status_code == 200
    everything = shop.data_dir.parent.rglob("*")
    files = [path for path in everything if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert files
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_a_credential_is_given_to_a_golden(guarded: tuple[Home, str]):
    shop, name = guarded
    words = "--name", "guarded", "--dir", "goldens"
    assert shop.playhead("golden", "add", name, *words).returncode == 0
    (shop.folder / "test_guarded.py").write_text(
        "def test_with(tape):\n"
        f"    tape.replay('guarded', headers={{'Authorization': 'Bearer {SECRET}'}})\n"
        "def test_without(tape):\n"
        "    tape.replay('guarded')\n"
    )
    done = under_pytest(shop)
    assert "1 failed, 1 passed" in done.stdout
    assert (
        "it came with authorization, which the tape does not hold; give it: tape.replay(" in done.stdout
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home in which a program was recorded that answers no requests."""
    home = Home(tmp_path_factory.mktemp("plain"), {})
    (home.folder / "plain.py").write_text("print('plain')")
    assert home.playhead("record", "plain.py").returncode == 0
    return home


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--header", "nonsense"), "--header takes a name and a value"),
        (("--header", "x-key: 1"), "is not an HTTP request: it has no headers"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(plain: Home, words: tuple[str, ...], said: str):
    refused = plain.playhead("replay", *words)
    assert refused.returncode == 2
    assert said in refused.stderr
