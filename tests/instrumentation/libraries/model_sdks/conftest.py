import pytest
from support.servers.scripted import ScriptedServer
from support.tapes.recorded_calls import recorded_calls


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def recorded():
    with recorded_calls() as running:
        yield running
