"""A coding agent: asks a model what to edit, and edits files as it says, in all the ways there are."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from openai import OpenAI

STEPS = int(sys.argv[1])


def edit(what: str, path: str, text: str) -> None:
    place = Path(path)
    if what == "write":
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    elif what == "append":
        with place.open("a") as file:
            file.write(text)
    elif what == "patch":
        with place.open("r+") as file:
            old = file.read()
            file.seek(0)
            file.write(old.replace("value", text))
            file.truncate()
    elif what == "replace":
        beside = place.with_suffix(".new")
        beside.write_bytes(text.encode() * 3)
        os.replace(beside, place)
    elif what == "rename":
        place.rename(text)
    elif what == "remove":
        place.unlink()
    elif what == "tree":
        shutil.rmtree(place)
    elif what == "mode":
        place.chmod(int(text, 8))
    elif what == "link":
        place.symlink_to(text)
    elif what == "copy":
        shutil.copy(place, text)
    else:
        subprocess.run(["sh", "-c", text], check=True)


sys.stdin.readline()  # begins when it is told to, or when nobody can
client = OpenAI(max_retries=0)
history = [{"role": "user", "content": "make it work"}]
for _ in range(STEPS):
    answer = client.chat.completions.create(model="gpt-5.5", messages=history)
    said = answer.choices[0].message.content
    history += [{"role": "assistant", "content": said}, {"role": "user", "content": "done"}]
    edit(**json.loads(said))
