"""requests-mock in the place of the adapter of requests."""

import sys

import requests
import requests_mock

with requests_mock.Mocker() as double:
    double.get("http://double/one", [{"text": "first"}, {"text": "second", "status_code": 503}])
    double.get("http://double/gone", exc=requests.exceptions.ConnectTimeout)
    print([requests.get("http://double/one").text for _ in range(3)])
    try:
        requests.get("http://double/gone")
    except requests.exceptions.ConnectTimeout as error:
        print(type(error).__name__)
    print(double.call_count)
sys.exit(3)
