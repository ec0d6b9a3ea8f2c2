"""responses in the place of the adapter of requests, in threads too."""

import sys
from concurrent.futures import ThreadPoolExecutor

import requests
import responses

with responses.RequestsMock() as double:
    double.get("http://double/one", json={"one": 1})
    double.get("http://double/two", body=b"x" * 100_000, stream=True)
    double.get("http://double/gone", body=requests.ConnectionError("not there"))
    print(requests.get("http://double/one").json())
    print(sum(map(len, requests.get("http://double/two", stream=True).iter_content(1000))))
    try:
        requests.get("http://double/gone")
    except requests.ConnectionError as error:
        print(repr(error))
    with ThreadPoolExecutor(4) as pool:
        print([one.json() for one in pool.map(requests.get, ["http://double/one"] * 8)])
    print(len(double.calls))
sys.exit(3)
