"""An agent of LangChain, of which other instrumentations make spans, too."""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor as OpenInference
from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor as OpenTelemetry
from opentelemetry.instrumentation.langchain import LangchainInstrumentor as OpenLLMetry

import playhead

for instrumentor in (OpenInference, OpenTelemetry, OpenLLMetry):
    instrumentor().instrument()


@tool
def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


@playhead.tool
def charged(order: int) -> str:
    return f"charged {order}"


@tool("charged")
def charge(order: int) -> str:
    """Charge an order."""
    return charged(order)


agent = create_agent(ChatOpenAI(model="gpt-4o"), [look_up, charge], name="billing")
print(agent.invoke({"messages": [("user", "refund")]})["messages"][-1].content)
