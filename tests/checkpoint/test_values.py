import enum
import math
import random
import subprocess
import sys
import zoneinfo
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

import msgspec
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, PrivateAttr
from support.letters import LETTERS

from playhead_checkpoint import Types, Unregistered
from playhead_checkpoint.store.conformance import VALUES, same
from playhead_checkpoint.tree import nodes, reading
from playhead_checkpoint.tree.encoding import NotPlain, ValueEncoder, holds_bytes
from playhead_checkpoint.tree.packing import Packer
from playhead_checkpoint.tree.ranges import KnownRanges
from playhead_checkpoint.tree.reading import Reader
from playhead_core.errors import CorruptTape, StateRefused


class Kept:
    """Nodes in memory."""

    def __init__(self, types: Types | None = None) -> None:
        self.nodes: dict[bytes, bytes] = {}
        self.types = types or Types()
        self.loads: list[set[bytes]] = []

    def pack(self, value: Any, packer: Packer | None = None) -> bytes:
        packer = packer or Packer(self.types)
        packed = packer.state(value)
        self.nodes |= packer.kept
        return packed

    def load(self, digests: Any) -> dict[bytes, bytes]:
        self.loads.append(set(digests))
        return {digest: self.nodes[digest] for digest in digests if digest in self.nodes}

    def read(self, packed: bytes, types: Types | None = None) -> Any:
        return Reader(self.load, types or self.types).value(packed)

    def again(self, value: Any) -> Any:
        return self.read(self.pack(value))


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
    | st.text(LETTERS) | st.binary()
    | st.decimals(allow_nan=False) | st.uuids() | st.dates() | st.timedeltas()
    | st.complex_numbers(allow_nan=False)
    | st.datetimes(timezones=st.none() | st.timezones()) | st.times()
)  # fmt: skip
hashable = st.recursive(
    st.integers() | st.text(LETTERS),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
values = st.recursive(
    scalars | hashable,
    lambda inner: (
        st.lists(inner) | st.lists(inner, min_size=200, max_size=300)
        | st.dictionaries(st.text(LETTERS), inner) | st.dictionaries(hashable, inner, max_size=4)
        | st.lists(inner).map(tuple) | st.sets(hashable, max_size=4)
    ),
    max_leaves=60,
)  # fmt: skip


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.acceptance)])
def test_what_is_packed_comes_back(count: int):
    @settings(max_examples=count, deadline=None)
    @given(values)
    def holds(value: Any):
        kept = Kept()
        packed = kept.pack(value)
        assert same(kept.read(packed), value)
        assert kept.pack(value) == packed

    holds()


def test_every_kind_of_value_comes_back_in_few_loads():
    kept = Kept()
    packed = kept.pack({"deep": VALUES})
    assert same(kept.read(packed), {"deep": VALUES})
    assert len(kept.loads) <= 8


@pytest.mark.parametrize("words", [3, 60, 250])
def test_a_list_of_each_length_comes_back_and_has_one_form(words: int):
    """Whatever was packed before, and whether the list was one of values or of bytes then."""
    kept, grown = Kept(), list[Any]()
    known = KnownRanges()
    chance = random.Random(words)
    for number in range(150):
        if number % 29 == 17:
            grown[chance.randrange(len(grown))] = {"edited": "é" * chance.randrange(3_000)}
        grown.append({"n": number, "text": "word " * chance.randrange(words)})
        for state in (grown, {"a": {"list": grown}, "b": number}):
            fresh = Kept()
            packer = Packer(kept.types, known)
            packed = kept.pack(state, packer)
            assert packed == fresh.pack(state)
            assert packer.logical_bytes > 0
            known.add(packer.ranges)
            assert same(fresh.read(packed), state)
            assert same(kept.read(packed), state)
            held = nodes.refs_in(packed)
            assert fresh.nodes.keys() <= kept.nodes.keys()
            reached = {ref.digest for ref in held}
            for node in reversed(fresh.nodes.values()):
                reached |= {ref.digest for ref in nodes.parsed(node).below}
            assert reached == fresh.nodes.keys()  # none is made that is not used


def test_what_only_looks_like_bytes_comes_back_as_it_was():
    kept, known = Kept(), KnownRanges()
    for value in (b"x", bytearray(b"x"), b"x"):
        for state in ([value] * 900, {"list": [{"a": [value]}] * 40, "b": value}, value, {"k": value}):
            packer = Packer(kept.types, known)
            found = kept.read(kept.pack(state, packer))
            known.add(packer.ranges)
            assert same(found, state)
    with pytest.raises(StateRefused, match=r"state\['a'\]\[3\]"):
        kept.pack({"a": [1, 2, 3, memoryview(b"x")]})


def test_packing_in_c_and_value_by_value_are_the_same():
    encoder = ValueEncoder(registered())
    for value in [
        *VALUES.values(),
        [Tool("a", [Frozen((1,))]), Colour.RED],
        {"m": Message(role="user")},
    ]:
        try:
            fast = encoder.packed(value)
        except NotPlain:
            continue
        assert holds_bytes(fast) or fast == encoder.exactly(value)


def test_nan_comes_back():
    assert math.isnan(Kept().again([float("nan")])[0])


def test_a_node_does_not_depend_on_what_was_packed_before():
    kept = Kept()
    grown: list[Any] = []
    for number in range(700):
        grown.append({"number": number, "text": "x" * (number % 90)})
    whole = kept.pack(grown)
    assert kept.pack(grown[:350] + grown[350:]) == whole
    before = set(kept.nodes)
    kept.pack(grown[1:])
    kept.pack([*grown, 1])
    kept.pack([*grown[:350], "new", *grown[350:]])
    assert len(kept.nodes.keys() - before) < 40


def test_no_node_is_large_and_no_tree_is_deep():
    kept = Kept()
    kept.pack([b"x" * 4_000] * 5_000)
    kept.pack([0] * 1_000_000)
    kept.pack({"k" * 1_000 + str(number): "v" * 4_000 for number in range(300)})
    kept.pack("t" * 5_000_000)
    assert max(map(len, kept.nodes.values())) < 80_000
    assert max(node[1] for node in kept.nodes.values()) < 10


# Types


class Colour(enum.Enum):
    RED = 1
    BLUE = object()


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass
class Tool:
    name: str
    uses: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.called = True


@dataclass(frozen=True, slots=True)
class Frozen:
    at: tuple[int, ...]


class Message(BaseModel):
    model_config = ConfigDict(extra="allow")
    role: str
    parts: list[Tool | str] = []
    _seen: int = PrivateAttr(default=0)


def registered() -> Types:
    types = Types()
    for cls in (Colour, Rights, Tool, Frozen, Message):
        assert types.register(cls) is cls
    return types


def test_registered_types_come_back():
    kept = Kept(registered())
    message = Message(role="user", parts=[Tool("t", [Frozen((1, 2))]), "x" * 9_000], extra=[Colour.BLUE])  # pyright: ignore
    message._seen = 4
    value = [
        Colour.RED,
        Rights.READ | Rights.WRITE,
        Tool("a"),
        Frozen((3,)),
        message,
        Message.model_construct(role="b"),
    ]
    found = kept.again(value)
    assert found == value
    assert found[4]._seen == 4 and found[4].model_fields_set == {"role", "parts", "extra"}
    assert found[5].model_fields_set == {"role"}
    assert not hasattr(found[2], "called")  # nothing of the class was called


def test_a_type_that_is_not_registered_is_refused_with_its_path():
    for value, path in (
        ({"a": [1, Colour.RED]}, "['a'][1]"),
        ({"a": Tool("x")}, "['a']"),
        (OrderedDict(a=1), ""),
        ([namedtuple("N", "x")(1)], "[0]"),
        ([1] * 3_000 + [numpy.float64(1)], "[3000]"),
        ({(1, 2): object()}, "[a tuple]"),
        ((1, [{2: {"deep": lambda: 1}}]), "[1][0][2]['deep']"),
        ({"k" * 500: object()}, "…]"),
    ):
        with pytest.raises(StateRefused, match="cannot be stored") as refused:
            Kept().pack(value)
        assert f"state{path}: " in str(refused.value) or path == "…]" in str(refused.value)
        assert len(str(refused.value)) < 400


def test_what_a_type_cannot_take_apart_is_refused():
    class Zone(tzinfo):
        pass

    for value in (datetime(2020, 1, 1, tzinfo=Zone()), numpy.array([object()]), numpy.zeros(2, "i4,i4")):
        with pytest.raises(StateRefused, match=r"state\[0\]"):
            Kept().pack([value])


def test_arrays_come_back():
    for array in (
        numpy.arange(24, dtype=">i2").reshape(2, 3, 4),
        numpy.zeros((0, 3)),
        numpy.array(5.5),
        numpy.asfortranarray(numpy.random.default_rng(1).random((300, 70))),
        numpy.array(["a", "bcd"]),
        numpy.array([True, False]),
        numpy.array(["2020-01-01"], "datetime64[D]"),
    ):
        found = Kept().again(array)
        assert found.dtype == array.dtype and numpy.array_equal(found, array) and found.flags.writeable


def test_a_zone_of_the_database_comes_back():
    value = datetime(2020, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Oslo"), fold=1)
    found = Kept().again(value)
    assert (found, found.fold, found.tzinfo) == (value, 1, value.tzinfo)


def test_names_in_storage_mean_what_the_program_registered():
    kept = Kept(registered())
    packed = kept.pack({"tool": Tool("a", [1])})
    found = kept.read(packed, Types())
    assert found == {"tool": Unregistered(f"{__name__}.Tool", {"name": "a", "uses": [1]})}


def test_storage_cannot_have_anything_imported_or_called():
    def named(name: str, parts: Any) -> bytes:
        return msgspec.msgpack.encode(msgspec.msgpack.Ext(2, msgspec.msgpack.encode([name, parts])))

    for name in ("os.system", "builtins.eval", "antigravity.fly", "posixpath.join"):
        assert Kept().read(named(name, "true")) == Unregistered(name, "true")
    assert "antigravity" not in sys.modules
    for name, parts in (
        ("ndarray", ["|O", [1], b"12345678"]),
        ("ndarray", ["<i4", [1 << 60], b"1234"]),
        ("ndarray", ["<i4", [2], b"1234"]),
        ("datetime", ["2020-01-01T00:00:00", 0, "../../etc/passwd"]),
        ("datetime", "x"),
        ("set", [[1]]),
        ("dict", [1]),
        ("decimal", "x"),
        ("uuid", b"x"),
    ):
        with pytest.raises(CorruptTape, match="damaged"):
            Kept().read(named(name, parts))
    types = registered()
    for cls, parts in (
        (Tool, {"uses": []}),
        (Tool, {"name": 1, "other": 2}),
        (Tool, []),
        (Colour, "GREEN"),
        (Message, {}),
    ):
        with pytest.raises(CorruptTape, match="damaged"):
            Kept(types).read(named(f"{__name__}.{cls.__qualname__}", parts))


def test_a_field_that_is_new_gets_its_default():
    @dataclass
    class Old:
        a: int

    @dataclass
    class New:
        a: int
        b: int = 5
        c: list[int] = field(default_factory=list)

    old, new = Types(), Types()
    old.register(Old, name="it")
    new.register(New, name="it")
    kept = Kept(old)
    assert kept.read(kept.pack(Old(1)), new) == New(1)


def test_a_name_stands_for_one_type():
    types = registered()
    types.register(Tool)
    with pytest.raises(StateRefused, match="another type"):
        types.register(Frozen, name=f"{__name__}.Tool")
    with pytest.raises(StateRefused, match="without saying how"):
        types.register(object)
    with pytest.raises(StateRefused, match="another type"):
        types.register(Message, name="datetime")


# Hostile nodes


def ref(kind: int, level: int, count: int, node: bytes) -> nodes.Ref:
    return nodes.Ref(kind, level, count, nodes.digest_of(node))


def test_hostile_nodes_are_refused():
    leaf = nodes.leaf(nodes.LIST, msgspec.msgpack.encode([1, 2]))
    text = nodes.leaf(nodes.TEXT, b"\xff")
    above, _ = nodes.index([ref(nodes.LIST, 0, 2, leaf)])
    odd = bytes((nodes.LIST, 1)) + b"x" * 35
    cut = nodes.leaf(nodes.LIST, b"\xdd\xff\xff\xff\xff")
    empty = bytes((nodes.LIST, 1))
    for node, wanted in (
        (leaf, ref(nodes.LIST, 0, 3, leaf)),
        (leaf, ref(nodes.DICT, 0, 2, leaf)),
        (leaf, ref(nodes.LIST, 1, 2, leaf)),
        (above, ref(nodes.LIST, 1, 3, above)),
        (text, ref(nodes.TEXT, 0, 1, text)),
        (text, ref(nodes.BYTES, 0, 2, text)),
        (odd, ref(nodes.LIST, 1, 1, odd)),
        (cut, ref(nodes.LIST, 0, 1, cut)),
        (empty, ref(nodes.LIST, 1, 0, empty)),
        (b"", ref(nodes.LIST, 0, 0, b"")),
        (b"x" * (1 << 18), ref(nodes.BYTES, 0, 0, b"x" * (1 << 18))),
    ):
        kept = Kept()
        kept.nodes = {nodes.digest_of(one): one for one in (leaf, node)}
        with pytest.raises(CorruptTape):
            kept.read(wanted.packed())
    for packed in (
        b"",
        b"\xc1",
        b"\xc7\x01\x01x",
        b"\xc7\x01\x07x",
        b"\xc7\x01\x02\x90",
        b"\x91" * 100_000,
    ):
        with pytest.raises(CorruptTape):
            Kept().read(packed)


def test_a_small_store_cannot_make_a_large_value(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "LARGEST_STATE_BYTES", 1 << 22)
    kept = Kept()
    node = nodes.leaf(nodes.LIST, msgspec.msgpack.encode(["x" * 1_000]))
    one = ref(nodes.LIST, 0, 1, node)
    kept.nodes[one.digest] = node
    for level in range(1, 12):
        node, count = nodes.index([one] * 8)
        one = nodes.Ref(nodes.LIST, level, count % (1 << 32), nodes.digest_of(node))
        kept.nodes[one.digest] = node
        if count > 1 << 28:
            break
    with pytest.raises(CorruptTape, match="takes more than"):
        kept.read(one.packed())


def test_values_are_not_read_deeper_than_they_are_written():
    data = b"\xc0"
    for _ in range(200):
        data = msgspec.msgpack.encode(msgspec.msgpack.Ext(2, b"\x92\xa5tuple" + b"\x91" + data))
    with pytest.raises(CorruptTape):
        Kept().read(data)


def test_packing_imports_numpy_and_pydantic_for_nobody():
    code = (
        "import sys\nfrom playhead_checkpoint.tree.packing import Packer\n"
        "from playhead_checkpoint import Types\n"
        "Packer(Types()).state({'a': [1, {2}, b'x'] * 999})\n"
        "print({'numpy', 'pydantic'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
