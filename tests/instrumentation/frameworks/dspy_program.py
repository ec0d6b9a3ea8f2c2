"""What programs do with DSPy: each part prints what it did."""

import asyncio
from types import SimpleNamespace

import dspy

import playhead

dspy.configure(lm=dspy.LM("openai/gpt-4o", cache=False))


def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@playhead.tool
def charged(order: int) -> str:
    """Charge an order."""
    return f"charged {order}"


class Billing(dspy.Signature):
    """You are billing."""

    request: str = dspy.InputField()
    answer: str = dspy.OutputField()


BILLING = dspy.ReAct(Billing, tools=[look_up, charged], max_iters=4)


def ask_billing(request: str) -> str:
    """Ask the agent for billing."""
    return BILLING(request=request).answer


class Support(dspy.Module):
    """A program of two models and an agent, which delegates to another one."""

    def __init__(self) -> None:
        super().__init__()
        self.triage = dspy.Predict("message -> topic")
        self.agent = dspy.ReAct("topic -> answer", tools=[fail, ask_billing])
        self.check = dspy.ChainOfThought("draft -> verdict")

    def forward(self, message: str) -> dspy.Prediction:
        topic = self.triage(message=message).topic
        return self.check(draft=self.agent(topic=topic).answer)


class Faq:
    """A retriever as programs write it."""

    def __call__(self, query: str, k: int = 3, **_: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(long_text=f"{query}: 3 days")][:k]


def support() -> object:
    return Support()(message="refund").verdict


class Both(dspy.Module):
    """A module that another one calls twice, in threads of DSPy."""

    def __init__(self) -> None:
        super().__init__()
        self.side = dspy.Predict("word -> reply")

    def forward(self, *words: str) -> list[str]:
        pairs = [(self.side, dspy.Example(word=word).with_inputs("word")) for word in words]
        run = dspy.Parallel(num_threads=2, disable_progress_bar=True)
        return [one.reply for one in run(pairs)]


def parallel() -> object:
    return Both()("left", "right")


def retrieval() -> object:
    with dspy.context(rm=Faq()):
        return dspy.Retrieve(k=2)("refunds").passages


async def streamed() -> object:
    """A module that streams, while the program waits for its items."""
    listener = dspy.streaming.StreamListener(signature_field_name="reply")
    stream = dspy.streamify(dspy.Predict("word -> reply"), stream_listeners=[listener])
    said = [one async for one in stream(word="streamed")]
    return ["".join(one.chunk for one in said[:-1]), said[-1].reply]


async def asynchronous() -> object:
    agent = dspy.ReAct("order -> answer", tools=[look_up])
    return (await agent.acall(order="later")).answer


def failing() -> object:
    """The model's answer has no field that the module needs, also when it is asked again."""
    try:
        dspy.Predict("word -> nothing")(word="failing")
    except Exception as error:
        return type(error).__name__
    return None


for part in (support, parallel, retrieval, failing):
    print(part.__name__, part())
for part in (streamed, asynchronous):
    print(part.__name__, asyncio.run(part()))
