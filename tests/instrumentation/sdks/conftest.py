import sys

import pytest
from support.answers.sdk_table import APART, surroundings
from support.servers.scripted import ScriptedServer
from support.tapes.recorded_calls import recorded_calls


@pytest.fixture(autouse=True, scope="package")
def sdks_apart(tmp_path_factory: pytest.TempPathFactory):
    """The SDKs can be imported here, behind all else."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in surroundings(tmp_path_factory.mktemp("sdks")).items():
            patched.setenv(name, value)
        sys.path.append(str(APART))
        yield
        sys.path.remove(str(APART))


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def recorded():
    with recorded_calls() as running:
        yield running
