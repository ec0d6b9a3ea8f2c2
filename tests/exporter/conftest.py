import pytest
from support.servers.endpoints import http_endpoint
from support.servers.ports import nobody
from support.tapes.spools import forget, outlet_for

from playhead_semconv.settings import Settings


@pytest.fixture
def endpoint():
    with http_endpoint() as found:
        yield found


@pytest.fixture
def settings(tmp_path):
    """Nobody listens at their endpoint."""
    found = Settings(spool_dir=str(tmp_path / "spool"), endpoint=nobody(), export_interval_ms=10)
    yield found
    forget(found)


@pytest.fixture
def outlet(settings):
    with outlet_for(settings) as found:
        yield found
