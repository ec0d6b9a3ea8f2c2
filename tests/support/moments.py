"""A program of random steps that notes, beside the recording, what was so after each of them."""

from support.asking import ASKING

WANDERER = f"""
import json, os, random, sys
import playhead
{ASKING}
chance = random.Random(int(sys.argv[1]))
steps, truth = int(sys.argv[2]), []
history, files, printed, reported = [], {{}}, "", {{}}

def said(text):
    global printed
    print(text)
    printed += text + "\\n"

def wrote(name, data, mode):
    with open(name, mode) as file:
        file.write(data)
    files[name] = (files.get(name, "") if mode == "a" else "") + data

def renamed(name, other):
    os.rename(name, other)
    files[other] = files.pop(name)

def removed(name):
    os.remove(name)
    del files[name]

def noted():
    truth.append(json.loads(json.dumps(
        {{"messages": history, "files": files, "stdout": printed, "states": reported}})))

noted()
for step in range(steps):
    history.append({{"role": "user", "content": f"step {{step}} {{chance.random()}}"}})
    history.append({{"role": "assistant", "content": answered(messages=history)["content"]}})
    for _ in range(chance.randrange(4)):
        one = chance.choice(["print", "write", "append", "rename", "remove", "state"])
        name = f"file-{{chance.randrange(5)}}.txt"
        if one == "print":
            said(f"line {{chance.random()}}")
        elif one == "write":
            wrote(name, "x" * chance.randrange(200), "w")
        elif one == "append":
            wrote(name, f"more {{step}}\\n", "a")
        elif one == "rename" and name in files:
            renamed(name, f"moved-{{step}}.txt")
        elif one == "remove" and name in files:
            removed(name)
        elif one == "state":
            which = chance.choice(["plan", "budget"])
            reported[which] = {{"at": step, "left": [chance.random() for _ in range(3)]}}
            playhead.state(reported[which], name=which)
    sys.stdout.flush()
    noted()
with open(os.environ["TRUTH"], "w") as file:
    json.dump(truth, file)
"""
"""``wanderer.py SEED STEPS``; it writes the list of what was so, from before the first step on, to
``$TRUTH``."""
