"""Ages out what services did outside of any request: measures, decides, drops."""

from playhead_receiver.storage.sql.history.ageing import HistoryAgeing

__all__ = ["HistoryAgeing"]
