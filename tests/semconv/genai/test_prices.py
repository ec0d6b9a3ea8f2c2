"""What calls cost, by provider, model, kind of token and date."""

from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from genai_prices.data_snapshot import get_snapshot

from playhead_genai.prices import Cost, cost_of, price_of
from playhead_semconv import attributes as a

THEN_NS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000_000


def call(model: str, provider: str = "openai", **counts: int) -> dict[str, Any]:
    found: dict[str, Any] = {a.GEN_AI_PROVIDER_NAME: provider, a.GEN_AI_REQUEST_MODEL: model}
    return found | {f"gen_ai.usage.{name.replace('__', '.')}": count for name, count in counts.items()}


def test_cached_tokens_are_counted_at_their_own_price():
    # https://openai.com/api/pricing: gpt-4o is $2.50 a million in, $1.25 cached, $10 out.
    whole = call("gpt-4o", input_tokens=1000, output_tokens=100)
    assert price_of(whole, THEN_NS) == Decimal("0.0035")
    cached = {**whole, a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 600}
    assert price_of(cached, THEN_NS) == Decimal("0.00275")


def test_what_is_written_to_the_cache_costs_more():
    # https://docs.anthropic.com/en/docs/about-claude/pricing: $3 in, $3.75 written, $0.30 read, $15 out.
    found = call(
        "claude-sonnet-4-5",
        "anthropic",
        input_tokens=3000,
        output_tokens=100,
        cache_read__input_tokens=1000,
        cache_write__input_tokens=1000,
    )
    wanted = (1000 * 3 + 1000 * Decimal("3.75") + 1000 * Decimal("0.3") + 100 * 15) / Decimal(10**6)
    assert price_of(found, THEN_NS) == wanted


def test_cached_tokens_that_a_span_does_not_count_as_input_are_added():
    apart = call("gpt-4o", input_tokens=10, cache_read__input_tokens=600)
    whole = call("gpt-4o", input_tokens=610, cache_read__input_tokens=600)
    assert price_of(apart, THEN_NS) == price_of(whole, THEN_NS)


def test_tokens_of_reasoning_are_output_tokens():
    plain = call("o3", input_tokens=10, output_tokens=1000)
    thinking = {**plain, a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 900}
    assert price_of(thinking, THEN_NS) == price_of(plain, THEN_NS)
    assert price_of(plain, THEN_NS)


def test_the_model_that_answered_is_the_one_that_is_paid():
    asked = call("gpt-4o", input_tokens=1000)
    answered = {**asked, a.GEN_AI_RESPONSE_MODEL: "gpt-4o-mini-2024-07-18"}
    assert price_of(answered, THEN_NS) == Decimal("0.00015")


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("aws.bedrock", "anthropic.claude-3-5-sonnet-20240620-v1:0"),
        ("azure.ai.openai", "gpt-4o-mini"),
        ("gcp.vertex_ai", "gemini-2.5-flash"),
        ("mistral_ai", "mistral-large-latest"),
        ("x_ai", "grok-4"),
    ],
)
def test_providers_are_known_by_the_names_of_the_conventions(provider: str, model: str):
    found = price_of(call(model, provider, input_tokens=1000), THEN_NS)
    assert found is not None and found > 0


@pytest.mark.parametrize(
    ("provider", "model", "dollars"),
    [
        ("openai", "gpt-4o-2024-08-06", "0.0035"),
        ("openai", "openai/gpt-4o", "0.0035"),
        ("anthropic", "claude-sonnet-4-5-20250929", "0.0045"),
        ("aws.bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0", "0.0045"),
        (
            "aws.bedrock",
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0",
            "0.0045",
        ),
        ("gcp.vertex_ai", "claude-sonnet-4@20250514", "0.0045"),
        ("gcp.gemini", "models/gemini-2.5-flash", "0.00055"),
        ("gcp.vertex_ai", "publishers/google/models/gemini-2.5-pro", "0.00225"),
        ("openai", "anthropic/claude-sonnet-4-5", "0.0045"),
        ("openai", "openai/gpt-oss-of-nobody:free", None),
        ("openai", "models/of-nobody", None),
    ],
)
def test_a_model_is_known_however_its_name_is_spelt(provider: str, model: str, dollars: str | None):
    found = price_of(call(model, provider, input_tokens=1000, output_tokens=100), THEN_NS)
    assert found == (None if dollars is None else Decimal(dollars))


def test_a_model_without_a_price_is_named_and_the_sum_says_so():
    known, unknown = call("gpt-4o", input_tokens=1000), call("house-model", "house", output_tokens=5)
    found = cost_of([(known, THEN_NS), (unknown, THEN_NS), (call("gpt-4o"), THEN_NS)])
    assert found == Cost(Decimal("0.0025"), ("house-model",))
    assert str(found) == "$0.0025+"
    assert str(cost_of([(unknown, THEN_NS)])) == ""


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        ("0", "$0.00"),
        ("0.0000213", "$0.000021"),
        ("0.0000125", "$0.000013"),
        ("0.00999", "$0.010"),
        ("0.0875", "$0.09"),
        ("12.346", "$12.35"),
    ],
)
def test_a_cost_is_written_with_two_digits(usd: str, text: str):
    assert str(Cost(Decimal(usd))) == text


@pytest.mark.parametrize(
    ("provider", "model", "usd"),
    [
        ("aws.bedrock", "amazon.nova-micro-v1:0", "0.175"),
        ("aws.bedrock", "us.anthropic.claude-3-5-sonnet-20240620-v1:0", "18"),
        ("gcp.gemini", "gemini-2.5-flash", "2.8"),
        ("gcp.vertex_ai", "gemini-2.5-flash", "2.8"),
        ("gcp.gen_ai", "gemini-2.5-flash", "2.8"),
        ("mistral_ai", "mistral-large-latest", "8"),
        ("cohere", "command-a-03-2025", "12.5"),
        ("groq", "llama-3.3-70b-versatile", "1.38"),
        ("x_ai", "grok-4", "18"),
        ("moonshot_ai", "kimi-k2-0711-preview", "3.1"),
    ],
)
def test_every_provider_has_its_prices(provider: str, model: str, usd: str):
    used = call(model, provider, input_tokens=1_000_000, output_tokens=1_000_000)
    found = price_of(used, THEN_NS)
    assert found is not None and found == Decimal(usd)


def test_the_quick_sum_of_many_calls_equals_the_prices_of_each():
    rng = Random(3)
    models = [(one.id, of.id) for of in get_snapshot().providers for one in of.models]
    for model, provider in [
        *rng.sample(models, 60),
        ("no-such-model", "openai"),
        ("deepseek-chat", "deepseek"),
    ]:
        calls = [
            (
                call(
                    model,
                    provider,
                    input_tokens=(read := rng.choice([0, 40, 9000]))
                    + rng.choice([0, 7, 300_000, 3_000_000]),
                    cache_read__input_tokens=read,
                    output_tokens=rng.choice([0, 1, 60_000]),
                    **({"audio__output_tokens": 1} if rng.random() < 0.1 else {}),
                ),
                THEN_NS + rng.randrange(48) * 3600 * 10**9,
            )
            for _ in range(10)
        ]
        exact = [
            price_of(*one) for one in calls if any(k.endswith("tokens") and v for k, v in one[0].items())
        ]
        assert cost_of(calls).usd == sum(one for one in exact if one is not None), (model, provider)
