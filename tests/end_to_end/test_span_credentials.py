"""Credentials in the spans of a program are recorded nowhere; `redact` takes out those known late."""

from __future__ import annotations

from pathlib import Path

from support.scanning import leaks, texts
from support.starting.home import Home

KNOWN = "zq77opaquevaluewithoutashape5521"
LATE = "yq88anothervaluewithoutashape662"
UNDER_NAMES = "UNKNOWNunderitsname9876543210abc"
SHAPED = "sk-proj-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
PROGRAM = f"""
import os
import httpx
from opentelemetry import trace
known, late, named = os.environ["VENDOR_API_KEY"], "{LATE}", "{UNDER_NAMES}"
tracer = trace.get_tracer("mine", attributes={{"vendor.api_key": named}})
with tracer.start_as_current_span("work", attributes={{"first": known}}) as span:
    span.set_attribute("db.statement", ["a plain statement", "known " + known])
    span.set_attribute("openai.api_key", named)
    span.set_attribute("http.request.header.authorization", ["Bearer " + named])
    span.set_attribute("prompt", "use {SHAPED}")
    span.set_attribute("later", "a late value " + late)
    span.add_event("log " + known, {{"body": known, "password": named}})
    span.record_exception(RuntimeError("refused " + known))
    span.set_status(trace.StatusCode.ERROR, "refused " + known)
with tracer.start_as_current_span("name " + known):
    pass
try:
    httpx.get("http://127.0.0.1:9/", headers={{"authorization": "Bearer " + late}})
except httpx.ConnectError:
    pass
"""


def test_credentials_in_spans_are_recorded_nowhere_and_late_ones_are_redacted(tmp_path: Path):
    home = Home(
        tmp_path,
        {
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "VENDOR_API_KEY": KNOWN,
            "OTEL_RESOURCE_ATTRIBUTES": f"vendor.access_token={UNDER_NAMES},note={KNOWN}",
        },
    )
    (tmp_path / "agent.py").write_text(PROGRAM)
    done = home.playhead("record", "agent.py")
    assert done.returncode == 0, done.stderr
    wanted = {
        "known": KNOWN.encode(),
        "under names": UNDER_NAMES.encode(),
        "shaped": SHAPED.encode(),
    }
    plain = {"plain": b"a plain statement", "late": LATE.encode()}
    assert set(leaks(texts(home.data_dir), plain)) == set(plain), "the scanner does not see the store"
    folders = [home.data_dir, tmp_path / "spool", tmp_path / "state"]
    assert [leaks(texts(folder), wanted) for folder in folders] == [{}, {}, {}]

    done = home.playhead("redact", "last")
    assert done.returncode == 0, done.stderr
    wanted["late"] = LATE.encode()
    assert leaks(texts(home.data_dir), wanted) == {}
    assert set(leaks(texts(home.data_dir), {"plain": plain["plain"]})) == {"plain"}
    assert home.playhead("verify").returncode == 0
