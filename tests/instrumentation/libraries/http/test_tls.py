"""TLS, trusted and not: every library gets again what it got."""

import asyncio
import ssl
import urllib.error
import urllib.request
import warnings

import aiohttp
import pytest
import requests
from support.observed.http_programs import failure
from support.servers.tls import tls_server
from support.tapes.sessions import record, replay


def through_requests(url, trusted):
    found = []
    with requests.Session() as client:
        found += [client.get(url, verify=trusted).content for _ in range(2)]
    try:
        requests.get(url)
    except requests.RequestException as error:
        found.append(failure(error))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found.append(requests.get(url, verify=False).content)
    return [*found, [str(one.message) for one in warned if one.category.__name__.startswith("Insecure")]]


def through_urllib(url, trusted):
    context = ssl.create_default_context(cafile=trusted)
    with urllib.request.urlopen(url, context=context) as answer:
        found = [answer.read()]
    try:
        urllib.request.urlopen(url)
    except urllib.error.URLError as error:
        found.append(failure(error))
    return found


def through_aiohttp(url, trusted):
    async def program():
        context = ssl.create_default_context(cafile=trusted)
        async with aiohttp.ClientSession() as client:
            async with client.get(url, ssl=context) as answer:
                found = [await answer.read()]
            try:
                await client.get(url)
            except aiohttp.ClientError as error:
                found.append(failure(error))
        return found

    return asyncio.run(program())


@pytest.mark.parametrize(
    "program, ends",
    [
        (through_requests, ["complete", "complete", "error", "complete"]),
        (through_urllib, ["complete", "error"]),
        (through_aiohttp, ["complete", "error"]),
    ],
)
def test_trusted_and_not(program, ends, tmp_path):
    with tls_server(tmp_path) as (url, trusted):
        recorded, tape = record(lambda: program(url, trusted))
    assert recorded[0] == b"1"
    assert "CERTIFICATE_VERIFY_FAILED" in str(recorded)
    assert [one.end.how for one in tape.exchanges().values() if one.end] == ends
    assert all(one.ask.key == f"GET {url}" for one in tape.exchanges().values())
    replayed, now = replay(lambda: program(url, trusted), tape)
    assert replayed == recorded
    assert [one.end.how for one in now.exchanges().values() if one.end] == ends
