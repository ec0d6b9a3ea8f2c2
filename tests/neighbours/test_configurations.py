"""The real Collector takes every scenario of `collector-config/`, and has exactly its components."""

import os
import subprocess

import pytest
import yaml
from collector_config.test_configs import SCENARIOS
from neighbours.programs import MANIFEST, PROGRAMS
from neighbours.running import CONFIGS

KINDS = ("receivers", "processors", "exporters", "extensions")


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_is_valid(name: str):
    words: list[object] = [PROGRAMS["otelcol"].path, "validate"]
    for file in SCENARIOS[name]:
        words += ["--config", CONFIGS / f"{file}.yaml"]
    tokens = {"AGENTS_TOKEN": "a", "PLAYHEAD_TOKEN": "b"}
    done = subprocess.run(
        [str(word) for word in words], env={**os.environ, **tokens}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_wrong_key_is_found():
    """The check above sees more than YAML."""
    words = [PROGRAMS["otelcol"].path, "validate", "--config", CONFIGS / "gateway.yaml"]
    wrong = "yaml:exporters::otlp_http/playhead::sending_queue::queue_syze: 1"
    done = subprocess.run([*words, "--config", wrong], capture_output=True, text=True)
    assert done.returncode == 1
    assert "queue_syze" in done.stderr


def test_the_manifest_names_what_is_built():
    done = subprocess.run([PROGRAMS["otelcol"].path, "components"], capture_output=True, text=True)
    built = yaml.safe_load(done.stdout)
    manifest = yaml.safe_load(MANIFEST.read_text("utf-8"))
    for kind in KINDS:
        modules = [entry["gomod"].split()[0] for entry in manifest[kind]]
        assert [one["module"].split()[0] for one in built[kind]] == sorted(modules) or {
            one["module"].split()[0] for one in built[kind]
        } == set(modules)
