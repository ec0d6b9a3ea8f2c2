"""Tools in bodies of providers: results and calls that an edit names; whether a call fits its tool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from playhead_core.errors import UsageError
from playhead_core.rerun.edits import Step, path_of, steps_of
from playhead_core.rerun.plans import Edit
from playhead_core.rerun.rewriting import document_in

SHOWN_CHARS = 120
"""Longest value in an error message."""


def last_tool_message(request: Any) -> str:
    """The path of the last tool message in a request. `UsageError` if there is none."""
    fields = _fields(request)
    for name in ("messages", "input"):
        items = _items(fields.get(name))
        for at in range(len(items) - 1, -1, -1):
            item = _fields(items[at])
            if item.get("role") == "tool":
                return path_of([name, at, "content"])
            if item.get("type") == "function_call_output":
                return path_of([name, at, "output"])
            blocks = _items(item.get("content"))
            for number in range(len(blocks) - 1, -1, -1):
                if _fields(blocks[number]).get("type") == "tool_result":
                    return path_of([name, at, "content", number, "content"])
    raise UsageError(
        "the request holds no result of a tool",
        hint="edit the request: --edit request.messages[-1].content=…",
    )


def in_tool_message(request: Any, edit: Edit) -> Edit:
    """An edit of ``tool_result`` as an edit of the request. `UsageError` if that holds no result."""
    place, rest = steps_of(last_tool_message(request)), steps_of(edit.path)
    blocks = _items(_at(request, place))
    if rest and isinstance(rest[0], str) and len(blocks) == 1 and "text" in _fields(blocks[0]):
        place += [0, "text"]
    return _moved(edit, [*place, *rest])


def in_function_call(answer: Any, edit: Edit) -> Edit:
    """An edit of ``function`` as one of the answer: of the last call of a function that is in it.

    ``name`` and ``arguments`` have these names with every provider. `UsageError` if there is no call.
    """
    calls = list(_calls(answer, []))
    if not calls:
        raise UsageError(
            "the answer calls no function",
            hint="edit the answer: --edit response.PATH=VALUE",
        )
    place, arguments = calls[-1]
    rest = steps_of(edit.path)
    return _moved(edit, [*place, *([arguments, *rest[1:]] if rest[:1] == ["arguments"] else rest)])


def require_fitting(request: Any, before: Any, after: Any) -> None:
    """`UsageError` if an edited call of a function does not fit the schema that ``request`` declares.

    ``before``, ``after``: the document of which the call is a part, as recorded and as edited.
    """
    schemas = dict(_declared(request))
    for place, name in _calls(after, []):
        call = _fields(_at(after, place))
        schema = schemas.get(str(call.get("name")))
        now, tape = call.get(name), _fields(_at(before, place)).get(name)
        if schema is not None and now != tape:
            _require_valid(str(call["name"]), schema, (tape, now))


def _require_valid(tool: str, schema: Any, sides: tuple[Any, Any]) -> None:
    import jsonschema.exceptions as said  # imported late: only edits need it
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    tape, now = (side if document_in(side) is None else document_in(side) for side in sides)
    try:
        kind = validator_for(schema)
        kind.check_schema(schema)
        # An empty registry: a reference to another document is not fetched.
        wrong: Any = kind(schema, registry=Registry()).iter_errors(now)
        problem = cast("said.ValidationError | None", said.best_match(wrong))
    except (said.SchemaError, Unresolvable, RecursionError):  # not a whole schema: it declares nothing
        return
    if problem is None:
        return
    place = [*cast("Iterable[Step]", problem.absolute_path)]
    path = path_of(["arguments", *place])
    declared = f"{tool} declares {_shown(problem.schema)}"
    raise UsageError(
        f"{tool} does not take {path} as edited: {problem.message[:SHOWN_CHARS]}",
        cause=f"tape: {_shown(_at(tape, place))}; now: {_shown(_at(now, place))}; {declared}",
        hint="the tools of the request say what is taken: --edit request.tools… edits them",
    )


def _calls(within: Any, place: list[Step]) -> Iterator[tuple[list[Step], str]]:
    """Where calls of functions are in a document, and the name under which each has its arguments."""
    if isinstance(within, dict):
        fields = cast("dict[str, Any]", within)
        if isinstance(fields.get("name"), str):
            if "arguments" in fields:
                yield place, "arguments"
            elif fields.get("type") == "tool_use":
                yield place, "input"
        for name, value in fields.items():
            yield from _calls(value, [*place, name])
    elif isinstance(within, list):
        for at, value in enumerate(cast("list[Any]", within)):
            yield from _calls(value, [*place, at])


def _declared(request: Any) -> Iterator[tuple[str, Any]]:
    """The tools of a request: name, and schema of the arguments."""
    for one in _items(_fields(request).get("tools")):
        tool = _fields(one)
        function = _fields(tool.get("function")) or tool
        schema = function.get("parameters", function.get("input_schema"))
        if isinstance(schema, dict):
            yield str(function.get("name")), cast("Any", schema)


def _at(document: Any, place: list[Step]) -> Any:
    """The value at a path; None where there is none."""
    for step in place:
        try:
            document = document[step]
        except (LookupError, TypeError):
            return None
    return document


def _moved(edit: Edit, place: list[Step]) -> Edit:
    return Edit(path_of(place), edit.value, edit.remove, edit.add)


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
