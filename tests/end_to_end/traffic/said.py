"""What a program of this folder has heard, a line of JSON for each call, and how it goes on with it.

``python PROGRAM URL PLAN [FOLDER …]``: the provider, a file with the requests, folders with libraries.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

warnings.simplefilter("ignore")
URL, PLAN, *LIBRARIES = sys.argv[1:]
sys.path[:0] = LIBRARIES


def requests() -> Iterator[dict[str, Any]]:
    """The requests to make: ``url``, ``body`` and ``asynchronous``."""
    with open(PLAN, encoding="utf-8") as plan:
        yield from json.load(plan)


def fields_of(body: str) -> dict[str, Any]:
    return json.loads(body) if body else {}


class Said:
    """What an SDK made of one answer."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        """By choice."""
        self.calls: list[list[Any]] = []
        """Name and arguments of each call of a tool."""
        self.finish: list[str] = []
        self.input: int | None = None
        self.output: int | None = None
        self.error: int | None = None
        """Status of a refusal."""

    def text(self, more: str | None, choice: int = 0) -> None:
        self.texts[choice] = self.texts.get(choice, "") + (more or "")

    def call(self, name: str, arguments: Any) -> None:
        self.calls.append([name, json.loads(arguments) if isinstance(arguments, str) else arguments])

    def used(self, given: int | None, answered: int | None) -> None:
        self.input = self.input if given is None else given
        self.output = self.output if answered is None else answered

    def tell(self) -> None:
        texts = [self.texts[number] for number in sorted(self.texts)]
        print(json.dumps(vars(self) | {"texts": texts}), flush=True)
