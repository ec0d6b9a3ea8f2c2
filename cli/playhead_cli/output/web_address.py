"""Addresses of the pages that a receiver serves at its query port."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def web_address(url: str, run: str = "", point: str = "", token: str = "") -> str:
    """The page of a run, or of all runs. ``url``: of the query API. ``point``: a step's number.

    The token stands in the fragment, which a browser sends to nobody; the page takes it out of the
    address.

    >>> web_address("http://127.0.0.1:4319", "refund-7", "3")
    'http://127.0.0.1:4319/?run=refund-7&step=3'
    """
    place = {name: value for name, value in (("run", run), ("step", point)) if value}
    query = f"?{urlencode(place)}" if place else ""
    fragment = f"#token={quote(token, safe='')}" if token else ""
    return f"{url.rstrip('/')}/{query}{fragment}"
