"""Puts credentials everywhere; what and where comes packed in the environment."""

import base64
import json
import os
import subprocess
import sys
import zlib

import httpx

plan = json.loads(zlib.decompress(base64.b85decode(os.environ.pop("PLAN"))))
base = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")

with httpx.Client(timeout=60) as http:
    # Nothing tells these before they stand in a body.
    messages = [{"role": "user", "content": text} for text in plan["prompt"]]
    http.post(f"{base}/v1/chat/completions", json={"model": "m", "messages": messages})
    for name in ("answer", "tool", "stream"):
        http.get(f"{base}/{name}").read()
    for text in plan["stdout"]:
        print(text)
    for number, _ in enumerate(plan["file"]):
        with open(f"handed-{number}.txt") as file:
            file.read()
    (authorization,), (key,), (cookie,) = plan["authorization"], plan["x-api-key"], plan["cookie"]
    headers = {"Authorization": f"Bearer {authorization}", "X-Api-Key": key, "Cookie": f"s={cookie}"}
    http.get(f"{base}/headers", headers=headers, params={"access_token": plan["query"][0]})
    (spoken,), (coded,) = plan["said in pieces"], plan["base64"]
    http.get(f"{base}/pieces", headers={"Authorization": f"Bearer {spoken}"}).read()
    http.get(f"{base}/headers", headers={"X-Api-Key": coded})
    print(base64.b64encode(f"a {coded} b".encode()).decode())

(variable,), (word,) = plan["child environment"], plan["child arguments"]
code = "import os, sys; print('child', sys.argv[2], os.environ['MYSQL_PWD'])"
subprocess.run(
    [sys.executable, "-c", code, "-H", f"Authorization: Bearer {word}"],
    env={**os.environ, "MYSQL_PWD": variable},
    check=True,
    capture_output=True,
)
print("environment", os.environ["PGPASSWORD"], os.environ["DEPLOY_TOKEN"], sys.argv[1:])
print("plain words of the program")
