"""Clocks that stand: freezegun, then time-machine."""

import datetime
import sys
import time

import freezegun
import httpx
import time_machine

transport = httpx.MockTransport(lambda request: httpx.Response(200, text="answered"))
with freezegun.freeze_time("2020-01-02 03:04:05") as clock:
    print(datetime.datetime.now(), time.time())
    print(httpx.Client(transport=transport).get("http://double/").text)
    clock.tick(60)
    print(datetime.datetime.now())
with time_machine.travel(0, tick=False):
    print(datetime.datetime.now(datetime.UTC), time.time())
    print(httpx.Client(transport=transport).get("http://double/").text)
sys.exit(3)
