import pytest
from support.recorded_calls import recorded_calls
from support.scripted import ScriptedServer


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def recorded():
    with recorded_calls() as running:
        yield running
