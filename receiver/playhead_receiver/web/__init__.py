"""The web pages, served at the query port."""

from playhead_receiver.web.serving import Pages

__all__ = ["Pages"]
