"""Programs that know no instrumentation: each prints what the models answered."""

CHAT = """
import openai
client = openai.OpenAI()
said = [{"role": "system", "content": "Be brief."}]
for asked in ("Oslo?", "And Rome?"):
    said.append({"role": "user", "content": asked})
    done = client.chat.completions.create(model="gpt-4o", messages=said)
    said.append({"role": "assistant", "content": done.choices[0].message.content})
    print(done.choices[0].message.content, done.choices[0].finish_reason, done.usage.total_tokens)
"""
STREAMED = """
import openai
asked = [{"role": "user", "content": "Oslo?"}]
wanted = {"stream": True, "stream_options": {"include_usage": True}}
with openai.OpenAI().chat.completions.create(model="gpt-4o", messages=asked, **wanted) as parts:
    chunks = list(parts)
print("".join(one.choices[0].delta.content or "" for one in chunks if one.choices))
print(chunks[-1].usage.total_tokens)
"""
TOOLS = """
import json
import openai
client = openai.OpenAI()
tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
said = [{"role": "user", "content": "Oslo and Rome?"}]
while True:
    done = client.chat.completions.create(model="gpt-4o", messages=said, tools=tools).choices[0]
    said.append(done.message)
    if not done.message.tool_calls:
        break
    for call in done.message.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        print("call", call.function.name, city)
        said.append({"role": "tool", "tool_call_id": call.id, "content": f"{city}: rain"})
print(done.message.content, done.finish_reason)
"""
STREAMED_TOOLS = """
import json
import asyncio
import openai
tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]

async def main():
    client = openai.AsyncOpenAI()
    said = [{"role": "user", "content": "Oslo and Rome?"}]
    calls, reason = {}, None
    async for chunk in await client.chat.completions.create(
        model="gpt-4o", messages=said, tools=tools, stream=True
    ):
        for choice in chunk.choices:
            reason = choice.finish_reason or reason
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += part.id or ""
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""
    print(reason, [(one["name"], json.loads(one["arguments"])) for one in calls.values()])
    made = [
        {
            "id": one["id"],
            "type": "function",
            "function": {"name": one["name"], "arguments": one["arguments"]},
        }
        for one in calls.values()
    ]
    said.append({"role": "assistant", "content": None, "tool_calls": made})
    said += [{"role": "tool", "tool_call_id": one["id"], "content": "rain"} for one in made]
    done = await client.chat.completions.create(model="gpt-4o", messages=said, tools=tools)
    print(done.choices[0].message.content)

asyncio.run(main())
"""
ASYNC = """
import asyncio
import openai

async def ask(client, city):
    asked = [{"role": "user", "content": f"{city}?"}]
    done = await client.chat.completions.create(model="gpt-4o", messages=asked)
    return done.choices[0].message.content

async def main():
    async with openai.AsyncOpenAI() as client:
        for said in await asyncio.gather(*(ask(client, city) for city in ("Oslo", "Rome", "Bonn"))):
            print(said)

asyncio.run(main())
"""
RESPONSES = """
import json
import openai
client = openai.OpenAI()
tools = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]
said = [{"role": "user", "content": "Oslo and Rome?"}]
while True:
    done = client.responses.create(model="gpt-5", instructions="Be brief.", input=said, tools=tools)
    calls = [one for one in done.output if one.type == "function_call"]
    if not calls:
        break
    for call in calls:
        print("call", call.name, json.loads(call.arguments)["city"])
        id = {"call_id": call.call_id}
        said.append({"type": "function_call", **id, "name": call.name, "arguments": call.arguments})
        said.append({"type": "function_call_output", **id, "output": "rain"})
print(done.output_text, done.usage.total_tokens)
"""
RESPONSES_STREAMED = """
import openai
text = ""
with openai.OpenAI().responses.create(model="gpt-5", input="Oslo?", stream=True) as events:
    for event in events:
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type == "response.completed":
            print(event.response.output_text == text, event.response.usage.total_tokens)
print(text)
"""
EMBEDDINGS = """
import openai
done = openai.OpenAI().embeddings.create(model="text-embedding-3-small", input=["Oslo", "Rome"])
print([one.embedding for one in done.data])
"""
MESSAGES = """
import anthropic
client = anthropic.Anthropic()
tools = [{"name": "weather", "input_schema": {"type": "object"}}]
said = [{"role": "user", "content": "Oslo and Rome?"}]
asked = {"model": "claude-sonnet-5", "max_tokens": 99, "system": "Be brief.", "tools": tools}
while True:
    done = client.messages.create(**asked, messages=said)
    said.append({"role": "assistant", "content": done.content})
    calls = [one for one in done.content if one.type == "tool_use"]
    if not calls:
        break
    results = []
    for call in calls:
        city = call.input["city"]
        print("call", call.name, city)
        results.append({"type": "tool_result", "tool_use_id": call.id, "content": f"{city}: rain"})
    said.append({"role": "user", "content": results})
print(done.content[0].text, done.stop_reason, done.usage.output_tokens)
"""
MESSAGES_STREAMED = """
import asyncio
import anthropic

async def main():
    asked = [{"role": "user", "content": "Oslo?"}]
    async with anthropic.AsyncAnthropic() as client:
        wanted = {"model": "claude-sonnet-5", "max_tokens": 99, "stream": True}
        events = await client.messages.create(**wanted, messages=asked)
        text = ""
        async for event in events:
            if event.type == "content_block_delta":
                text += event.delta.text
        print(text)

asyncio.run(main())
"""
FAILED = """
import openai
client = openai.OpenAI(max_retries=0)
for asked in ("fail", "Oslo?"):
    try:
        said = [{"role": "user", "content": asked}]
        done = client.chat.completions.create(model="gpt-4o", messages=said)
        print(done.choices[0].message.content)
    except openai.APIStatusError as error:
        print(type(error).__name__, error.status_code)
"""
AGENT = """
import asyncio
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.anthropic import AnthropicModel

class Answer(BaseModel):
    text: str

one = Agent(OpenAIChatModel("gpt-4o"), name="one", instructions="Be brief.")
two = Agent(AnthropicModel("claude-sonnet-5"), name="two", instructions="Be short.")

@one.tool_plain
@two.tool_plain
async def weather(city: str) -> str:
    print("call", city)
    return f"{city}: rain"

async def main():
    print((await one.run("Oslo and Rome?")).output)
    print((await two.run("Oslo and Rome?")).output)
    async with one.run_stream("Oslo and Rome?") as done:
        print("".join([part async for part in done.stream_text(delta=True, debounce_by=None)]))
    print(done.usage.total_tokens)

asyncio.run(main())
"""
PROGRAMS = {
    "chat": CHAT,
    "streamed": STREAMED,
    "tools": TOOLS,
    "streamed_tools": STREAMED_TOOLS,
    "async": ASYNC,
    "responses": RESPONSES,
    "responses_streamed": RESPONSES_STREAMED,
    "embeddings": EMBEDDINGS,
    "failed": FAILED,
    "messages": MESSAGES,
    "messages_streamed": MESSAGES_STREAMED,
    "agent": AGENT,
}
"""By name."""
