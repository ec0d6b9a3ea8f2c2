"""Nothing that a tape, a span, a golden, a setting of a run or a request says becomes code.

`risky_calls.txt` lists every place that could evaluate, import, unpickle, start, look up, format or
write what data names, with the reason why that is safe. A new place fails here until its row says what
reaches it.
"""

from collections import Counter
from pathlib import Path

import pytest
from support.risky_calls import Place, found_in, places

ROOT = Path(__file__).parent.parent
ROOMS = ("semconv", "instrumentation", "exporter", "checkpoint", "replay", "analysis", "receiver", "cli")
LISTED = Path(__file__).with_name("risky_calls.txt")


def listed() -> Counter[Place]:
    """The places of the file: ``KIND: REASON``, below it ``FILE: FUNCTION COUNT, …`` for each file."""
    found: Counter[Place] = Counter()
    kind = ""
    for line in LISTED.read_text("utf-8").splitlines():
        head, _, rest = line.partition(": ")
        if not line.startswith(" "):
            kind = head
            assert not line or len(rest) > 20, f"no reason: {line}"
            continue
        for one in rest.split(", "):
            function, count = one.split()
            found[kind, head.strip(), function.strip("-")] += int(count)
    return found


def test_every_place_where_data_could_become_code_is_listed_with_a_reason():
    now, before = places(ROOT, ROOMS), listed()
    assert now - before == Counter(), "new places; what reaches them? see risky_calls.txt"
    assert before - now == Counter(), "places that are gone; take them out of risky_calls.txt"


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("eval(x)", {"code": 1}),
        ("list(map(exec, x))", {"code": 1}),
        ("import builtins as b\nb.eval(x)", {"code": 1}),
        ("__import__(x)", {"import": 1}),
        ("from importlib import import_module as load\nload(x)", {"import": 1}),
        ("import importlib\nspec.loader.exec_module(x)", {"import": 1}),
        ("import runpy\nrunpy.run_path(x)", {"import": 1}),
        ("from importlib.metadata import entry_points\nentry_points(group=x)", {"entry points": 1}),
        ("import pickle\npickle.loads(x)", {"unpickle": 1}),
        ("import dill", {"unpickle": 1}),
        ("import yaml\nyaml.load(x)", {"unpickle": 1}),
        ("import yaml\nyaml.safe_load(x)", {}),
        ("import os\nos.system(x)", {"process": 1}),
        ("import subprocess as s\ns.run(x, shell=True)", {"process": 2}),
        ("start(x, shell=wanted)", {"process": 1}),
        ("getattr(x, y)\ngetattr(x, 'y')", {"attribute": 1}),
        ("setattr(x, y, 1)", {"attribute": 1}),
        ("from operator import attrgetter\nattrgetter(x)", {"attribute": 1}),
        ("class A:\n    def __getattr__(self, name): return getattr(self.x, name)", {}),
        ("x.format(1)\n'{}'.format(1)", {"format": 1}),
        ("x % (1, 2)\n'%s' % (1,)\n1 % x", {"format": 1}),
        ("import logging\nlogging.info(x, y)\nlogging.info('%s', y)", {"format": 1}),
        ("import jinja2\njinja2.Environment()", {"format": 1}),
        ("from string import Template\nTemplate(x)", {"format": 1}),
        ("data.decode(encoding)\ndata.decode('utf-8')", {"codec": 1}),
        ("import codecs\ncodecs.lookup(x)", {"codec": 1}),
        ("from zoneinfo import ZoneInfo\nZoneInfo(x)", {"codec": 1}),
        ("import ctypes\nctypes.CDLL(x)", {"ctypes": 1}),
        ("import sys\nsys.modules[x]\nsys.modules.get(x)\nsys.modules['os']", {"module by name": 2}),
        ("open(x, 'w')\nopen(x)\nx.open('ab')\nx.write_text('')", {"write": 3}),
        ("import os\nos.open(x, os.O_RDWR)\nos.open(x, os.O_RDONLY)", {"write": 1}),
        ("code = 1\ncode.co_name", {}),
    ],
)
def test_what_is_found(source: str, kinds: dict[str, int]):
    found: Counter[str] = Counter()
    for (kind, _, _), count in found_in(source).items():
        found[kind] += count
    assert found == Counter(kinds)
