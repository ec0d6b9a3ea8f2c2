"""How much of a service's own run is kept, in words."""

import pytest

from playhead_core.errors import ConfigurationError
from playhead_core.settings import Settings
from playhead_receiver.storage.api.retention import History
from playhead_receiver.storage.retention import EVERYTHING, FOREVER_S, history_of


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (Settings().process_history, History()),
        ("1h 64MiB", History(3600.0, 64 << 20)),
        ("2G 30m", History(1800.0, 2 << 30)),
        ("7d", History(7 * 86400.0, EVERYTHING)),
        ("forever 10M", History(FOREVER_S, 10 << 20)),
        ("512K", History(FOREVER_S, 512 << 10)),
        ("off", None),
        (" 0 ", None),
    ],
)
def test_a_time_and_a_size(text: str, kept: History | None):
    assert history_of(text) == kept


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("an hour", "'an' is not a size"),
        ("1h 2h", "2h is one too many"),
        ("1h 64MiB 1G", "1G is one too many"),
        ("1h/64MiB", "'1h/64MiB' is not a size"),
        ("-1h", "'-1h' is not a duration"),
    ],
)
def test_what_is_neither_is_refused(text: str, problem: str):
    with pytest.raises(ConfigurationError, match=problem) as caught:
        history_of(text)
    assert "1h 64MiB" in caught.value.hint
