import pytest
from support.servers.endpoints import http_endpoint
from support.servers.ports import nobody
from support.tapes.spools import forget, tape_exporter_for

from playhead_core.settings import Settings
from playhead_exporter import tape_exporter as exporter_module
from playhead_exporter.spool import copier, spool


@pytest.fixture
def endpoint():
    with http_endpoint() as found:
        yield found


@pytest.fixture
def settings(tmp_path):
    """No process listens at their endpoint. Its address changes, and its destination stays."""
    found = Settings(
        spool_dir=str(tmp_path / "spool"),
        endpoint=nobody(),
        destination="tests",
        export_interval_ms=10,
    )
    yield found
    forget(found)


@pytest.fixture
def patient(monkeypatch):
    """Closing a tape exporter waits up to a minute for the first answer, and for its threads."""
    monkeypatch.setattr(exporter_module, "FIRST_MEETING_S", 60.0)
    monkeypatch.setattr(exporter_module, "DISK_AT_EXIT_S", 60.0)


@pytest.fixture
def slow_disk(monkeypatch):
    """A disk that works is no stalled one, however long the machine takes for a write."""
    monkeypatch.setattr(exporter_module, "SYNC_DEADLINE_S", 60.0)
    monkeypatch.setattr(copier, "STALL_S", 60.0)
    monkeypatch.setattr(spool, "PATIENCE_S", 60.0)


@pytest.fixture
def tape_exporter(settings):
    with tape_exporter_for(settings) as found:
        yield found
