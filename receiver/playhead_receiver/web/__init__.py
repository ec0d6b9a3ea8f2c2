"""The pages that people look at runs with, served at the query port."""

from playhead_receiver.web.serving import Pages

__all__ = ["Pages"]
