"""Edits of JSON documents by path: ``messages[-1].content``, ``tools[0]["x.y"]``, ``choices[0]``.

A path consists of names joined by dots, and numbers in brackets; a negative number counts from the end.
A name that contains a dot or a bracket is written in brackets and quotes. An empty path is the document.
A path goes on inside a string that is itself a JSON document; the string stays one.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from typing import Any, TypeAlias, cast

from playhead_core.errors import UsageError, nearest
from playhead_core.rerun.plans import Edit
from playhead_core.rerun.rewriting import document_in, written_like

Step: TypeAlias = str | int

_STEP = re.compile(r'\.?([^.\[\]"]+)|\[(-?\d+)\]|\["((?:[^"\\]|\\.)*)"\]')


def steps_of(path: str) -> list[Step]:
    """Return the names and numbers of a path. Raises `UsageError` if it is not a path.

    >>> steps_of('messages[-1].content')
    ['messages', -1, 'content']
    """
    steps: list[Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise UsageError(
                f"{path} is no path: it cannot be read from {path[at:]!r} on",
                hint="names and numbers, as in messages[-1].content",
            )
        name, number, quoted = found.groups()
        steps.append(int(number) if number else json.loads(f'"{quoted}"') if name is None else name)
        at = found.end()
    return steps


def path_of(steps: Iterable[Step]) -> str:
    """The inverse of `steps_of`."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _plain(step):
            path += f".{step}" if path else step
        else:
            path += f"[{json.dumps(step)}]"
    return path


def _plain(name: str) -> bool:
    return bool(name) and not any(sign in name for sign in '.[]"')


def applied(document: Any, edits: Iterable[Edit]) -> Any:
    """Return a copy of ``document`` with ``edits`` applied, in order.

    Raises `UsageError` if one matches nothing; it names the nearest path. A last name that is missing
    is added where the edit allows it.
    """
    document = copy.deepcopy(document)
    for edit in edits:
        document = _applied(document, edit)
    return document


def _applied(document: Any, edit: Edit) -> Any:
    return _edited(document, steps_of(edit.path), 0, edit)


def _edited(value: Any, steps: list[Step], place: int, edit: Edit) -> Any:
    """Return ``value``, to which the first ``place`` of ``steps`` lead, edited. Changes it in place."""
    if place == len(steps):
        new: Any = edit.value
        if isinstance(new, (dict, list)) and document_in(value) is not None:
            return written_like(value, new)
        return edit.value
    inside = document_in(value)
    if inside is not None:
        return written_like(value, _edited(inside, steps, place, edit))
    within: Any = value
    step, is_last = steps[place], place == len(steps) - 1
    if is_last and edit.add and isinstance(within, dict) and isinstance(step, str):
        cast("dict[str, Any]", within)[step] = edit.value
    elif is_last and edit.add and isinstance(within, list) and isinstance(step, int):
        items = cast("list[Any]", within)
        items.insert(step if step >= 0 else len(items) + 1 + step, edit.value)
    else:
        child = _child(within, steps, place, step)
        fields = cast("dict[Step, Any]", within)
        if is_last and edit.remove:
            del fields[step]
        else:
            fields[step] = _edited(child, steps, place + 1, edit)
    return value


def _child(within: Any, steps: list[Step], place: int, step: Step) -> Any:
    if isinstance(within, dict) and isinstance(step, str) and step in within:
        return cast("dict[str, Any]", within)[step]
    if isinstance(within, list) and isinstance(step, int):
        items = cast("list[Any]", within)
        if -len(items) <= step < len(items):
            return items[step]
    raise _nothing(within, steps, place, step)


def _nothing(within: Any, steps: list[Step], place: int, step: Step) -> UsageError:
    there, add = path_of(steps[:place]) or "it", ""
    meant: Step | None = None
    if isinstance(within, dict):
        names = [str(name) for name in cast("dict[str, Any]", within)]
        meant = nearest(str(step), names, 0.3)
        shown = f"{there} has {', '.join(names) or 'nothing'}"
        if place == len(steps) - 1 and isinstance(step, str):
            add = f"; to add it: +{path_of(steps)}=VALUE"
    elif isinstance(within, list):
        count = len(cast("list[Any]", within))
        meant = count - 1 if count else None
        shown = f"{there} has {count} items"
    else:
        shown = f"{there} is {json.dumps(within, ensure_ascii=False)[:40]}, which has no parts"
    hint = "it cannot be edited there"
    if meant is not None:
        hint = f"the nearest path is {path_of([*steps[:place], meant])}"
    return UsageError(f"{path_of(steps)} matches nothing", cause=shown, hint=hint + add)


def between(old: Any, new: Any, path: tuple[Step, ...] = ()) -> list[Edit]:
    """Return the edits that turn ``old`` into ``new``."""
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        found = [Edit(path_of((*path, name)), remove=True) for name in before if name not in after]
        for name, value in after.items():
            if name not in before:
                found.append(Edit(path_of((*path, name)), value, add=True))
            else:
                found += between(before[name], value, (*path, name))
        return found
    if isinstance(old, list) and isinstance(new, list):
        left, right = cast("list[Any]", old), cast("list[Any]", new)
        if len(left) == len(right):
            pairs = enumerate(zip(left, right, strict=True))
            return [edit for at, (a, b) in pairs for edit in between(a, b, (*path, at))]
    same = type(cast("object", old)) is type(cast("object", new)) and old == new
    return [] if same else [Edit(path_of(path), new)]
