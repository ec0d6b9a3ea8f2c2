"""Makes recorded requests with httpx alone, to a host that nobody knows, through a proxy."""

from typing import Any
from urllib.parse import urlsplit

import httpx
from said import URL, requests

JSON = {"content-type": "application/json"}
with httpx.Client(proxy=URL, timeout=60) as client:
    for request in requests():
        place = urlsplit(request["url"])
        url = f"http://gateway.example:8080{place.path}?{place.query}".rstrip("?")
        answer: Any = client.post(url, content=request["body"].encode(), headers=JSON)
        print(answer.status_code, len(answer.content), flush=True)
