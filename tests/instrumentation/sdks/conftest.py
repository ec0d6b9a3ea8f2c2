import sys

import pytest
from support.recorded_calls import recorded_calls
from support.scripted import ScriptedServer
from support.sdk_table import APART, surroundings


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
