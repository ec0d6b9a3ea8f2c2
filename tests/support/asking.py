"""What a program needs to ask a model without an SDK: the import of one takes longer than most tests."""

ASKING = """
import json, os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

def answered(**body):
    key = os.environ["OPENAI_API_KEY"]
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    place = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    text = json.dumps({"model": "gpt-5.5", **body}, separators=(",", ":"))
    request = Request(place, text.encode(), head)
    try:
        with urlopen(request) as reply:
            return json.load(reply)["choices"][0]["message"]
    except HTTPError as problem:
        if problem.code != 429:
            raise
    return answered(**body)

def asked(what, **more):
    return answered(messages=[{"role": "user", "content": what}], **more)["content"]
"""
