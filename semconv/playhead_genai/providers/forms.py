"""Bodies of ``multipart/form-data``, as clients upload files: their fields as an object."""

from __future__ import annotations

import base64
import re
from typing import Any, cast

from playhead_genai.providers.reading import Object, mapping, text

_BOUNDARY = re.compile(rb"\A--([^\r\n]{1,70})\r\n")
_NAME = re.compile(rb'(?i)[;\s]name="([^"\r\n]*)"')
_FILE = re.compile(rb'(?i)[;\s]filename="([^"\r\n]*)"')
_TYPE = re.compile(rb"(?im)^content-type:[ \t]*([^\r\n;]+)")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?\Z")


def form_of(body: bytes) -> Object | None:
    """Return the fields of a form; None: ``body`` is none.

    A field is its text, a file an object with ``filename``, ``content_type`` and ``data`` (base64). What
    is given several times, or named ``NAME[]``, is an array ``NAME``.
    """
    found = _BOUNDARY.match(body)
    if found is None:
        return None
    fields: Object = {}
    for part in body[found.end() :].split(b"\r\n--" + found[1]):
        head, blank, data = part.lstrip(b"\r\n").partition(b"\r\n\r\n")
        named = _NAME.search(head)
        if not blank or named is None:
            continue
        name = named[1].decode("utf-8", "replace")
        _put(fields, name, _value(head, data))
    return fields


def _value(head: bytes, data: bytes) -> Any:
    file = _FILE.search(head)
    if file is None:
        return data.decode("utf-8", "replace")
    kind = _TYPE.search(head)
    return {
        "filename": file[1].decode("utf-8", "replace"),
        "content_type": kind[1].decode("utf-8", "replace").strip() if kind else None,
        "data": base64.b64encode(data).decode(),
    }


def _put(fields: Object, name: str, value: Any) -> None:
    bare = name.removesuffix("[]")
    if bare not in fields:
        fields[bare] = [value] if bare != name else value
        return
    have = fields[bare]
    if not isinstance(have, list):
        have = fields[bare] = [have]
    cast(list[Any], have).append(value)


def typed(fields: Object, *names: str) -> Object:
    """Return ``fields`` with numbers and truth values in place of the texts of these names."""
    found = dict(fields)
    for name in names:
        word = text(fields.get(name))
        if word in ("true", "false"):
            found[name] = word == "true"
        elif word and (number := _NUMBER.match(word)):
            found[name] = float(word) if number[1] else int(word)
    return found


def files_in(value: Any) -> list[Object]:
    """Return the files of a field: one, or several."""
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    return [file for item in items if "data" in (file := mapping(item))]
