"""Prices that a file corrects: what they say of calls, and files that say nothing good."""

import io
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from playhead_core.errors import ConfigurationError
from playhead_genai.price_corrections import MOST_BYTES, read_corrections
from playhead_genai.prices import correct, price_of
from playhead_instrumentation.control.spending import Spent
from playhead_receiver.system.price_file import use_prices
from playhead_semconv import attributes as a

THEN_NS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000_000
FILE = """
[[price]]
model = "house-*"
input = 2
output = 10.5
cache-read = 0.5

[[price]]
model = "gpt-4o"
provider = "openai"
input = 1

[[price]]
model = "gpt-4o"
provider = "openai"
since = 2026-03-02
input = 3

[[price]]
model = "house-free"
input = 0
"""


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    yield
    correct(())


def read(text: str | bytes) -> Any:
    return read_corrections(io.BytesIO(text.encode() if isinstance(text, str) else text), "prices.toml")


def call(model: str, provider: str = "openai", **counts: int) -> dict[str, Any]:
    found: dict[str, Any] = {a.GEN_AI_PROVIDER_NAME: provider, a.GEN_AI_REQUEST_MODEL: model}
    return found | {f"gen_ai.usage.{name.replace('__', '.')}": count for name, count in counts.items()}


@pytest.mark.parametrize(
    ("used", "began_ns", "dollars"),
    [
        (call("house-model", "house", input_tokens=10**6, output_tokens=10**6), THEN_NS, "12.5"),
        (call("house-model", input_tokens=10**6, cache_read__input_tokens=10**6), THEN_NS, "0.5"),
        (call("models/house-model", input_tokens=10**6), THEN_NS, "2"),
        (call("house-free", input_tokens=10**6, output_tokens=10**6), THEN_NS, "0"),
        (call("gpt-4o", input_tokens=10**6), THEN_NS, "1"),
        (call("gpt-4o", input_tokens=10**6), THEN_NS + 86_400 * 10**9, "3"),
        (call("gpt-4o", "azure.ai.openai", input_tokens=10**6), THEN_NS, "2.5"),
        (call("gpt-4o-mini", input_tokens=10**6), THEN_NS, "0.15"),
    ],
)
def test_a_file_goes_before_the_library(used: dict[str, Any], began_ns: int, dollars: str):
    correct(read(FILE))
    assert price_of(used, began_ns) == Decimal(dollars)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[price", "is no TOML file"),
        (b"\xff", "is no TOML file"),
        ("a = " + "[" * 100_000, "is no TOML file"),
        ("[price]\nmodel = 'x'", "has more than tables"),
        ("[[prices]]\nmodel = 'x'", "has more than tables"),
        ("price = [1]", "is no table"),
        ("[[price]]\ninput = 1", "names no model"),
        ("[[price]]\nmodel = 'x'", "says no price"),
        ("[[price]]\nmodel = 'x'\ninptu = 1", "did you mean input"),
        ("[[price]]\nmodel = 'x'\ninput = -1", "is not a number of US dollars"),
        ("[[price]]\nmodel = 'x'\ninput = nan", "is not a number of US dollars"),
        ("[[price]]\nmodel = 'x'\ninput = 1e999999999", "is not a number of US dollars"),
        ("[[price]]\nmodel = 'x'\ninput = true", "is not a number of US dollars"),
        ("[[price]]\nmodel = 'x'\ninput = '1'", "is not a number of US dollars"),
        ("[[price]]\nmodel = 'x'\ninput = 1\nsince = 3", "is no day"),
        (b"#" * (MOST_BYTES + 1), "is larger than 1 MiB"),
        ("[[price]]\n" * 10_001, "has more than 10,000 prices"),
    ],
)
def test_a_file_that_says_nothing_good_is_a_clear_error(text: str | bytes, said: str):
    with pytest.raises(ConfigurationError) as caught:
        read(text)
    assert said in f"{caught.value}" and "prices.toml" in f"{caught.value}"


def test_mangled_files_are_errors_and_no_more():
    source = random.Random(7)
    for _ in range(300):
        mangled = bytearray(FILE.encode())
        for _ in range(3):
            mangled[source.randrange(len(mangled))] = source.randrange(256)
        try:
            correct(read(bytes(mangled)))
        except ConfigurationError:
            continue
        price_of(call("house-model", input_tokens=5), THEN_NS)


def test_receiver_command_and_rules_read_it(tmp_path: Path):
    path = tmp_path / "prices.toml"
    path.write_text(FILE)
    use_prices(str(path))
    assert price_of(call("house-model", output_tokens=2), THEN_NS) == Decimal("0.000021")
    use_prices("")
    assert price_of(call("house-model", output_tokens=2), THEN_NS) is None
    spent = Spent(str(path))
    spent.prices()
    spent.used("run", call("house-model", output_tokens=1000), THEN_NS)
    assert spent.cost_usd("run") == 0.0105
    for way in (use_prices, lambda path: Spent(path).prices()):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            way(str(tmp_path / "none.toml"))
