"""Handles secrets in every way that programs do; each comes from a plan in the environment."""

import json
import os
import sys

import httpx
from openai import OpenAI

secrets = json.loads(os.environ.pop("PLAN"))
base = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")

client = OpenAI(api_key=secrets["sdk-api-key"], default_headers={"X-Api-Key": secrets["x-api-key"]})
answer = client.chat.completions.create(
    model="gpt-5.5", messages=[{"role": "user", "content": "Tell me an ordinary sentence."}]
)
print(answer.choices[0].message.content)
for part in client.chat.completions.create(
    model="gpt-5.5",
    messages=[{"role": "user", "content": f"My key is {secrets['bearer']}, keep it."}],
    stream=True,
    extra_headers={"Authorization": f"Bearer {secrets['bearer']}"},
):
    if part.choices and part.choices[0].delta.content:
        print(part.choices[0].delta.content, end="")
print()

with httpx.Client(timeout=60) as http:
    http.get(
        f"{base}/tool",
        params={"api_key": secrets["query-api-key"], "token": secrets["query-token"], "city": "Rome"},
        headers={
            "Authorization": "Basic " + secrets["basic"],
            "Cookie": f"session={secrets['cookie']}",
            "X-Auth-Token": secrets["x-auth-token"],
            "Proxy-Authorization": "Bearer " + secrets["proxy"],
        },
    )
    http.get(f"http://user:{secrets['userinfo']}@{base.removeprefix('http://')}/tool")
    http.post(
        f"{base}/oauth/token",
        data={
            "grant_type": "password",
            "client_secret": secrets["oauth-client-secret"],
            "password": secrets["oauth-password"],
            "refresh_token": secrets["oauth-refresh"],
        },
    )
    # The answer holds access_token and sets a cookie; both are used and echoed afterwards.
    granted = http.post(
        f"{base}/oauth/json", json={"client_secret": secrets["oauth-json-secret"], "scope": "all"}
    )
    token = granted.json()["access_token"]
    echo = http.post(f"{base}/echo", headers={"Authorization": f"Bearer {token}"}, json={"say": "hello"})
    print(echo.text)
    try:
        http.get(f"http://127.0.0.1:1/?key={secrets['error-key']}")
    except httpx.ConnectError as problem:
        print(f"failed: {problem} with {secrets['error-key']}", file=sys.stderr)

print("environment:", os.environ["SERVICE_PASSWORD"], os.environ["AWS_SECRET_ACCESS_KEY"])
print("arguments:", sys.argv[1:])
