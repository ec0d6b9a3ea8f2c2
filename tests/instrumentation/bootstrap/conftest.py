import pytest
from support.servers.scripted import ScriptedServer
from support.starting.programs import Program


@pytest.fixture
def program(tmp_path):
    made: list[Program] = []

    def make(source: str, **options) -> Program:
        folder = tmp_path / f"program{len(made)}"
        folder.mkdir()
        made.append(Program.of(folder, source, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def server():
    with ScriptedServer() as running:
        yield running
