import doctest

import pytest

from playhead_core.process import environment


def test_the_example_holds():
    assert doctest.testmod(environment) == (0, 5)


@pytest.mark.parametrize("name", ["TZ", "LC_ALL", "OPENAI_BASE_URL", "OLLAMA_HOST", "AGENT_MODEL"])
def test_inputs_are_kept(name: str):
    assert environment.is_kept(name)


@pytest.mark.parametrize("name", ["PATH", "AWS_SECRET_ACCESS_KEY", "SENTRY_DSN", "PLAYHEAD_LEVEL"])
def test_everything_else_is_not(name: str):
    assert not environment.is_kept(name)
