"""Stand-in for the CLI of the Claude Agent SDK: it reads prompts, and answers as scripted."""

import json
import sys

SESSION = "session-7"
TEXTS = {"fail": "no more budget", "again": "I remember"}


def send(kind, **message):
    print(json.dumps({"type": kind, "session_id": SESSION, **message}), flush=True)


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask_sdk(number, message):
    """Send a message to a tool server in the SDK's process, and return the answer."""
    request = {"subtype": "mcp_message", "server_name": "shop", "message": message}
    send("control_request", request_id=f"cli-{number}", request=request)
    return receive()["response"]["response"]["mcp_response"]


def answer(identifier, *blocks, parent=None, tokens=5):
    """The model's answer, in a message for each block."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 3, "output_tokens": tokens}
    for block in blocks:
        message = {
            "id": identifier,
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [block],
            "stop_reason": None,
            "usage": usage,
        }
        send("assistant", message=message, parent_tool_use_id=parent)


def text(said):
    return {"type": "text", "text": said}


def use(call, name, **arguments):
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def result(call, said, parent=None, **more):
    block = {"type": "tool_result", "tool_use_id": call, "content": said, **more}
    send("user", message={"role": "user", "content": [block]}, parent_tool_use_id=parent)


def refund():
    """Tools of the CLI, of which one fails; a tool of the program; and a subagent with a tool."""
    answer("m1", text("I look."), use("t1", "Read", path="order"), use("t2", "Bash", command="no"))
    result("t1", [text("order 81")])
    result("t2", "not allowed", is_error=True)
    answer("m2", use("t3", "mcp__shop__charge", order=81))
    ask_sdk(
        1,
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
        },
    )
    ask_sdk(2, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    called = ask_sdk(
        3,
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "charge", "arguments": {"order": 81}},
        },
    )
    result("t3", called["result"]["content"])
    answer("m3", use("t4", "Task", prompt="check"))
    send("user", message={"role": "user", "content": [text("check")]}, parent_tool_use_id="t4")
    answer("s1", use("t5", "Grep", pattern="81"), parent="t4")
    result("t5", "found", parent="t4")
    answer("s2", text("It is right."), parent="t4")
    result("t4", [text("It is right.")])
    answer("m4", text("Refunded."), tokens=7)


def ask(number, subtype, **request):
    """Ask the program for something, and return its answer."""
    send("control_request", request_id=f"cli-{number}", request={"subtype": subtype, **request})
    return receive()["response"]["response"]


def permit(callbacks):
    """A hook and a permission callback of the program, and a line on stderr."""
    print("careful", file=sys.stderr, flush=True)
    answer("p1", use("t6", "Bash", command="ls"))
    told = ask(4, "hook_callback", callback_id=callbacks[0], input={"tool_name": "Bash"})
    allowed = ask(5, "can_use_tool", tool_name="Bash", input={"command": "ls"})
    result("t6", json.dumps([told, allowed], sort_keys=True))
    answer("p2", text("Done."))


def wait():
    """The turn ends when the program interrupts it, or goes."""
    answer("w1", text("I begin."))
    line = receive()
    answered(line)
    answer("w2", text(line["request"]["subtype"]))


def answered(line):
    response = {"subtype": "success", "request_id": line["request_id"], "response": {}}
    send("control_response", response=response)


def callbacks_of(request):
    matchers = (request.get("hooks") or {}).values()
    return [name for many in matchers for one in many for name in one["hookCallbackIds"]]


def main():
    callbacks = []
    if "-v" in sys.argv:
        print("2.1.300 (Claude Code)")
        return
    while True:
        line = receive()
        if line["type"] == "control_request":
            callbacks = callbacks_of(line["request"])
            answered(line)
        elif line["type"] == "user":
            prompt = line["message"]["content"]
            if prompt == "die":
                sys.exit(3)
            send("system", subtype="init", model="claude-sonnet-4-5", tools=[])
            if prompt == "refund":
                refund()
            elif prompt == "permit":
                permit(callbacks)
            elif prompt == "wait":
                wait()
            elif prompt == "crash":
                answer("c1", text("I am going to"))
                sys.exit(3)
            else:
                answer(f"m-{prompt}", text(TEXTS[prompt]))
            send(
                "result",
                subtype="error_max_budget_usd" if prompt == "fail" else "success",
                is_error=prompt == "fail",
                duration_ms=1,
                duration_api_ms=1,
                num_turns=1,
                result=TEXTS.get(prompt, "Refunded."),
                total_cost_usd=0.01,
                usage={},
            )


main()
