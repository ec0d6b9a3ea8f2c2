"""An agent whose runs each call the tools that the model names, until it names none."""

import sys

import openai

import playhead

client = openai.OpenAI(max_retries=0)
for number in range(2, int(sys.argv[2]) + 2):  # the process is the first run
    name = f"{sys.argv[1]}-{number}"
    with playhead.run(name):
        messages = [{"role": "user", "content": name}]
        while True:
            answer = client.chat.completions.create(model="gpt-4o", messages=messages)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "[]"})
