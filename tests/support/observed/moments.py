"""A program of random steps that notes, beside the recording, what was so after each of them."""

from support.observed.asking import ASKING

WANDERER = f"""
import json, os, random, sqlite3, sys
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

base = sqlite3.connect("kept.db")
base.execute("create table kept (at integer primary key, text text)")
base.commit()
rows = {{}}

def kept(at, text, by):
    rows[at] = text
    by.execute("insert or replace into kept values (?, ?)", (at, text))
    by.commit()

def noted():
    truth.append(json.loads(json.dumps({{"messages": history, "files": files, "stdout": printed,
        "states": reported, "rows": sorted(rows.items())}})))

noted()
for step in range(steps):
    history.append({{"role": "user", "content": f"step {{step}} {{chance.random()}}"}})
    history.append({{"role": "assistant", "content": answered(messages=history)["content"]}})
    for _ in range(chance.randrange(4)):
        one = chance.choice(["print", "write", "append", "rename", "remove", "state", "row", "other"])
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
        elif one == "row":
            kept(chance.randrange(9), f"row {{step}} " * chance.randrange(50), base)
        elif one == "other":
            with sqlite3.connect("kept.db") as by:
                kept(chance.randrange(9), f"other {{step}}", by)
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
