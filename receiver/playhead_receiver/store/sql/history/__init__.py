"""What services did for no request, and how it ages out: measured, decided on, dropped."""

from playhead_receiver.store.sql.history.rolling import Rolling

__all__ = ["Rolling"]
