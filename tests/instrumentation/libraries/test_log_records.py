"""The log records of an unmodified program: recorded beside its run, found, and not compared."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from support.starting.home import Home

from playhead_instrumentation.libraries.log_records import LONGEST, MOST_RECORDS, is_exported
from playhead_semconv import attributes as a

KEY = "aZ3kP9qLw7Rt5Xy2Mn8Bv4Cd6"

PROGRAM = """
import atexit, json, logging, os, threading, warnings
import playhead

log = logging.getLogger("app.cache")
logging.captureWarnings(True)
logging.raiseExceptions = False
handler = logging.StreamHandler()
handler.formatter = logging.Formatter("%(message)s")
handler.formatter.formatStack = lambda stack: ""  # of the launcher
logging.getLogger().addHandler(handler)
atexit.register(lambda: log.critical("at the end"))

class Answer:
    def __str__(self):
        log.error("while it is formatted")
        return "answer"

@playhead.tool
def look_up(order):
    extra = {"api_key": os.environ["KEY"], "order": order, "found": {"in": None}, "otelSpanID": "0"}
    log.warning("cache miss for %s\\nkey %s", order, os.environ["KEY"], extra=extra)
    return order

log.info("below the level")
look_up(81)
try:
    json.loads("{")
except ValueError:
    log.exception("no answer")
log.error("x" * 100_000)
log.error("%d of %s", "three")
log.warning("an %s", Answer(), stack_info=True)
warnings.warn("old")
thread = threading.Thread(target=log.warning, args=("in a thread",))
thread.start()
thread.join()
pid = os.fork()
if pid == 0:
    log.error("in a child")
    os._exit(0)
os.waitpid(pid, 0)
"""

FLOOD = f"""
import logging, sys
log = logging.getLogger("app")
log.addHandler(logging.NullHandler())
for number in range({MOST_RECORDS * 5}):
    log.warning("record %d", number)
"""


def recorded(folder: Path, program: str, level: str, **environ: str) -> Home:
    home = Home(folder, {"KEY": KEY, **environ})
    (folder / "agent.py").write_text(program)
    done = home.playhead("record", "--level", level, "agent.py")
    assert done.returncode == 0, done.stderr
    return home


def logs(home: Home, *words: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in home.playhead("logs", "last", *words, "--json").stdout.splitlines()
    ]


@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_records_of_a_program(tmp_path: Path, level: str):
    home = recorded(tmp_path, PROGRAM, level)
    found = {one["body"]: one for one in logs(home)}
    assert [(one["level_name"], one["logger"], one["step"]) for one in found.values()] == [
        ("warning", "app.cache", 1),
        ("error", "app.cache", None),
        ("error", "app.cache", None),
        ("error", "app.cache", None),
        ("warning", "app.cache", None),
        ("error", "app.cache", None),
        ("warning", "py.warnings", None),
        ("warning", "app.cache", None),
        ("error", "app.cache", None),
        ("fatal", "app.cache", None),
    ]
    miss, failed, long, unfit, odd, *rest = found.values()
    assert miss["body"].startswith("cache miss for 81\nkey ")
    assert miss["attributes"]["order"] == 81
    assert json.loads(miss["attributes"]["found"]) == {"in": None}
    assert "otelSpanID" not in miss["attributes"]
    assert KEY not in json.dumps(logs(home))
    assert failed["attributes"][a.EXCEPTION_TYPE] == "json.decoder.JSONDecodeError"
    assert failed["attributes"][a.EXCEPTION_MESSAGE].startswith("Expecting property name")
    trace = failed["attributes"][a.EXCEPTION_STACKTRACE].splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert '    json.loads("{")' in trace
    assert (
        failed["attributes"][a.CODE_LINE_NUMBER] == PROGRAM[: PROGRAM.index("log.exc")].count("\n") + 1
    )
    assert long["body"] == f"{'x' * LONGEST} [100000 characters, the first {LONGEST}]"
    assert (unfit["body"], odd["body"]) == ("%d of %s", "an answer")
    assert "log.warning" in odd["attributes"][a.CODE_STACKTRACE]
    nested, warned, *last = (one["body"] for one in rest)
    assert (nested, "UserWarning: old" in warned) == ("while it is formatted", True)
    assert last == ["in a thread", "in a child", "at the end"]
    assert {one["run"] for one in found.values()} == {"agent-1"}

    (shown,) = json.loads(home.playhead("show", "last:1", "--json").stdout)["logs"]
    assert shown["body"] == miss["body"]
    assert "agent-1" in home.playhead("ls", "level:error").stdout
    assert "cache miss for 81" in home.playhead("search", "miss").stdout
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical"), report["divergences"]
    assert home.playhead("delete", "--yes", "last").returncode == 0
    assert "miss" not in home.playhead("search", "miss").stdout


def test_what_is_recorded_is_a_setting(tmp_path: Path):
    home = recorded(tmp_path, PROGRAM, "exchanges", PLAYHEAD_LOG_LEVEL="critical")
    assert [one["body"] for one in logs(home)] == ["at the end"]
    home = recorded(tmp_path, PROGRAM, "exchanges", PLAYHEAD_BOUNDARIES="-logs")
    assert logs(home) == []
    home = recorded(tmp_path, PROGRAM, "exchanges", PLAYHEAD_CONTENT="metadata")
    miss, failed, *_ = logs(home)
    assert (miss["body"], failed["body"]) == (None, None)
    code = {a.CODE_FILE_PATH, a.CODE_FUNCTION_NAME, a.CODE_LINE_NUMBER}
    assert (miss["attributes"].keys(), failed["attributes"].keys()) == (code, code | {a.EXCEPTION_TYPE})


def test_more_records_than_a_second_may_have_are_counted(tmp_path: Path):
    found = logs(recorded(tmp_path, FLOOD, "exchanges"))
    own = [one for one in found if one["logger"] == "app"]
    dropped = sum(one["attributes"].get(a.PLAYHEAD_LOG_DROPPED, 0) for one in found)
    assert len(own) + dropped == MOST_RECORDS * 5
    assert len(own) == len({one["body"] for one in own})


@pytest.mark.parametrize(
    ("address", "endpoint", "same"),
    [
        ("http://localhost:4318/v1/logs", "http://127.0.0.1:4318", True),
        ("http://localhost:4318/v1/logs", "http://127.0.0.1:4317", True),
        ("http://localhost:4318/v1/logs", "http://127.0.0.1:9", False),
        ("https://logs.example/v1/logs", "http://127.0.0.1:4318", False),
    ],
)
def test_what_the_sdk_sends_to_the_same_receiver_is_not_recorded_twice(
    address: str, endpoint: str, same: bool
):
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(address)))
    parent, child = logging.Logger("app"), logging.Logger("app.cache")
    child.parent = parent
    with pytest.warns(DeprecationWarning, match="LoggingHandler"):
        parent.addHandler(LoggingHandler(logging.ERROR, provider))
    assert is_exported(child, logging.ERROR, endpoint) is same
    assert not is_exported(child, logging.WARNING, endpoint)
    child.propagate = False
    assert not is_exported(child, logging.ERROR, endpoint)
    provider.shutdown()
