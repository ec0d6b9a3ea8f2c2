import pytest


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A destination on a busy machine is not asked again before it has answered."""
    monkeypatch.setattr("playhead_receiver.forward.delivery.TIMEOUT_S", 60.0)
