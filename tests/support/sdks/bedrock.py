"""boto3 on Bedrock; it has no asynchronous client."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import boto3
from botocore.config import Config
from support.sdks import cases


class Bedrock:
    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, tries: int = 1, timeout_s: float = 20.0) -> Any:
        return boto3.client(
            "bedrock-runtime",
            "eu-west-1",
            endpoint_url=self.url,
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(
                retries={"mode": "standard", "total_max_attempts": tries}, read_timeout=timeout_s
            ),
        )

    def asked(self, wants: str) -> dict[str, Any]:
        content: list[Any] = [{"text": cases.HELLO}]
        if wants == "image":
            picture = {"bytes": base64.b64decode(cases.PIXEL)}
            content.append({"image": {"format": "png", "source": picture}})
        asked: dict[str, Any] = {
            "modelId": cases.MODEL,
            "messages": [{"role": "user", "content": content}],
        }
        if wants in ("tools", "schema"):
            spec = {
                "name": cases.TOOL,
                "description": cases.ABOUT,
                "inputSchema": {"json": cases.SCHEMA},
            }
            asked["toolConfig"] = {"tools": [{"toolSpec": spec}]}
        if wants == "schema":  # an answer of this form is asked for as the arguments of a tool
            asked["toolConfig"]["toolChoice"] = {"tool": {"name": cases.TOOL}}
        return asked

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        answer = self.client(tries, timeout_s).converse(**self.asked(wants))
        return answer["output"]["message"]["content"]

    def stream(self, wants: str = "") -> Iterator[object]:
        parts = self.client().converse_stream(**self.asked(wants))["stream"]
        try:
            yield from parts
        finally:
            parts.close()
