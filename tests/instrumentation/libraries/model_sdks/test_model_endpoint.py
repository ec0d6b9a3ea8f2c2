"""Who is called, from a client's class and base URL."""

import pytest

from playhead_instrumentation.libraries.model_sdks.entry_point import (
    ModelEndpoint,
    ModelEndpoints,
    endpoint,
)


@pytest.mark.parametrize(
    ("url", "client", "provider", "port"),
    [
        ("https://api.openai.com/v1/", "OpenAI", "openai", 443),
        ("http://127.0.0.1:8000/v1/", "OpenAI", "", 8000),
        ("https://mine.openai.azure.com/openai/", "AsyncAzureOpenAI", "azure.ai.openai", 443),
        ("https://mine.openai.azure.com/openai/v1/", "OpenAI", "azure.ai.openai", 443),
        ("https://gateway.corp/openai/", "AzureOpenAI", "azure.ai.openai", 443),
        ("https://mine.services.ai.azure.com/models", "OpenAI", "azure.ai.inference", 443),
        ("https://api.deepseek.com", "OpenAI", "deepseek", 443),
        ("https://api.groq.com/openai/v1", "OpenAI", "groq", 443),
        ("https://api.x.ai/v1", "OpenAI", "x_ai", 443),
        ("https://notx.ai/v1", "OpenAI", "", 443),
        ("https://api.mistral.ai/v1", "OpenAI", "mistral_ai", 443),
        ("https://api.perplexity.ai", "OpenAI", "perplexity", 443),
        ("https://api.moonshot.cn/v1", "OpenAI", "moonshot_ai", 443),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "OpenAI", "gcp.gemini", 443),
        ("https://us-central1-aiplatform.googleapis.com/v1", "OpenAI", "gcp.vertex_ai", 443),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com", "AnthropicBedrock", "aws.bedrock", 443),
        ("https://us-ml.cloud.ibm.com/ml/v1", "OpenAI", "ibm.watsonx.ai", 443),
    ],
)
def test_provider_and_port(url, client, provider, port):
    found = endpoint(url, client)
    assert (found.provider, found.port) == (provider, port)


def test_no_provider_where_the_host_says_nothing():
    assert endpoint("https://gateway.corp/", "Anthropic") == ModelEndpoint("", "gateway.corp", 443)


def test_a_client_is_asked_again_when_its_base_url_changes():
    class Client:
        base_url = "https://api.openai.com/v1/"

    client, endpoints = Client(), ModelEndpoints()
    first = endpoints.of(client, "/chat/completions")
    assert first == ModelEndpoint("openai", "api.openai.com", 443)
    assert endpoints.of(client, "/responses") is first
    client.base_url = "https://api.x.ai/v1/"
    assert endpoints.of(client, "/responses") == ModelEndpoint("x_ai", "api.x.ai", 443)
    assert endpoints.of(client, "https://api.groq.com:8443/x") == ModelEndpoint(
        "groq", "api.groq.com", 8443
    )
