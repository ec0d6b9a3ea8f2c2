"""What the doctor says of the libraries in the agent's environment."""

import subprocess
import sys
from pathlib import Path

import pytest

from playhead_cli.doctor.libraries import check_libraries
from playhead_core.settings import Settings


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the metadata of a few libraries, and with a hook of another distribution."""
    folder = tmp_path_factory.mktemp("agent")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([python, "-c", asked], text=True).strip())
    for name, version, module in [
        ("openai", "3.52.0", "openai"),
        ("google-genai", "3.6.1", "google/genai"),
        ("google-auth", "2.0", "google/auth"),
        ("requests", "2.32.0", "requests"),
        ("pymongo", "4.9", "pymongo"),
        ("crewai", "1.15.0", "crewai"),
        ("rich", "14.0", "rich"),
        ("crew-hook", "0.1", "crew_hook"),
    ]:
        info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(f"{module}/__init__.py,,\n")
        if name == "crew-hook":
            (info / "entry_points.txt").write_text("[playhead_frameworks]\ncrewai = crew_hook:hook\n")
    return python


def lines(python: Path, **settings: str) -> dict[str, tuple[str, str]]:
    found = check_libraries(str(python), Settings(**settings))
    return {one.text.partition(", ")[0]: (one.mark, one.text.partition(", ")[2]) for one in found}


def test_each_known_library_is_listed_with_how_it_is_known(python: Path):
    found = lines(python)
    assert list(found) == [
        "crewai 1.15.0",
        "google-genai 3.6.1",
        "openai 3.52.0",
        "pymongo 4.9",
        "requests 2.32.0",
    ]
    assert found["openai 3.52.0"] == ("good", "entry point: a span for each model call")
    assert found["google-genai 3.6.1"] == ("good", "entry point: a span for each model call")
    assert found["requests 2.32.0"] == ("good", "wire: bytes")
    assert found["crewai 1.15.0"][0] == "good"
    assert found["crewai 1.15.0"][1].startswith("hook of crew-hook: spans of agents")


def test_what_is_not_recorded_of_a_library_is_said(python: Path):
    found = lines(python, boundaries="-openai,-frameworks")
    assert found["pymongo 4.9"] == ("warning", "not recorded: its commands")
    assert found["openai 3.52.0"] == (
        "off",
        "entry point: a span for each model call (off: level exchanges or boundaries +openai)",
    )
    assert found["crewai 1.15.0"][0] == "off"


def test_an_environment_without_libraries_is_said(tmp_path: Path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    [(text, (mark, _))] = lines(tmp_path / "venv" / "bin" / "python").items()
    assert mark == "warning" and text.startswith("no client library is installed there")
