"""Which calls search for something, and which results of a search are empty."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final, cast
from urllib.parse import SplitResult

from playhead_genai.tool_results import in_words

_SEARCHES: Final = re.compile(
    r"(?:^|_)(?:search\w*|bing|tavily|pinecone|weaviate|qdrant|docs?_look_?up|(?:ask|grep)_docs|"
    r"retriev\w*|rag|knowledge|kb|similarity|semantic|vectors?|embeddings?|faqs?|"
    r"wiki\w*|recall|(?:find|query|fetch|get|look_?up)_(?:\w+_)?(?:docs|documents|articles|passages|"
    r"chunks|contexts?|memories|snippets))(?:_|$)"
)
"""Names of tools that search: an empty result of another tool may be what it should be."""
_QUERIES: Final = re.compile(r"(?:^|_)(?:query|queries|sql|db|database|select|cypher|sparql)(?:_|$)")
_PATHS: Final = re.compile(
    r"/(?:_search|_msearch|search|query|retrieve|knn_search|similarity_search|hybrid_search)/?$"
)
"""Ends of paths at which databases of documents are searched."""
_RESULTS: Final = frozenset(
    "results result matches documents docs hits items data rows records points objects articles passages"
    " chunks entries nodes sources value values answers pages memories contexts snippets organic"
    " organic_results found".split()
)
"""Fields of a result that hold what was found."""
_COUNTS: Final = ("count", "total", "total_results", "totalResults", "num_results", "total_count")
_ANSWERS: Final = ("answer", "summary")
"""Fields next to what was found that say it in words."""
_TEXTS: Final = (
    *_ANSWERS,
    *"content text passage abstract body chunk snippet extract description title message output".split(),
)
"""Fields of a result that may say in words what was found."""
_THINGS: Final = frozenset(("id", "name", "url"))
"""Fields of one thing: an empty list in it does not mean that nothing was found."""
_FOUND: Final = (
    r"(?:results?|documents?|docs|match(?:es)?|records?|rows?|entry|entries|hits?|articles?|passages?|"
    r"pages?|"
    r"information|sources|items|chunks|context|answers?|data|content)\b"
)
_AFTER: Final = (
    r"(?:\W*$|\s*[.!,:;]| (?:found|available|returned|retrieved|about|for|from|in|match\w*|that|with|"
    r"(?:is|are|was|were) (?:found|available|returned|retrieved))\b)"
)
_NOTHING: Final = re.compile(
    r"\W*(?:sorry[,.]? |unfortunately,? )?(?:i |we |there (?:are|is|were|was) |"
    r"(?:the |your |this )?(?:search|query|knowledge base|index|tool)(?: \W.{0,60}\W)? )?"
    r"(?:found |returned |gave |has |had |contains |yielded )?(?:"
    r"(?:no|0|zero) (?:\w+ ){0,3}" + _FOUND + _AFTER + r"|"
    r"nothing(?: \w+)? (?:found|matched)|none found|(?<=found )nothing|(?<=returned )nothing|"
    r"(?:did not|didn't|could not|couldn't|unable to|failed to) (?:find|match|return) (?:any|a)\w*|"
    r"(?:none|null|n/?a|not found|no[ _]results|empty(?: (?:result|set|list|response|results))*|"
    r"(?:search )?results?: (?:none|0|\[\])|total(?: \w+)?: 0|<\w+ ?/>|<(\w+)>\s*</\1>)\W*$)[^?]*$",
    re.IGNORECASE,
)
LONGEST_NOTHING: Final = 200
"""Characters of a text that says that nothing was found; a longer one has something in it."""


@lru_cache(maxsize=256)
def is_search(tool: str) -> bool:
    """Return whether a tool searches, by its name.

    >>> is_search("webSearch"), is_search("look_up_docs"), is_search("research_x"), is_search("look_up")
    (True, True, False, False)
    """
    return _SEARCHES.search(in_words(tool)) is not None


@lru_cache(maxsize=256)
def is_query(tool: str) -> bool:
    """Return whether a tool takes queries, by its name: it searches, or asks a database."""
    return is_search(tool) or _QUERIES.search(in_words(tool)) is not None


def is_search_url(url: SplitResult) -> bool:
    """Return whether a request to this address searches."""
    return _PATHS.search(url.path) is not None


def is_empty(value: Any) -> bool:
    """Return whether the result of a search has nothing in it.

    >>> is_empty([]), is_empty('{"docs": [], "count": 0}'), is_empty({"ok": True}), is_empty(None)
    (True, True, False, False)
    >>> is_empty('"{\\\\"docs\\\\": []}"'), is_empty('"three pages"')
    (True, False)
    >>> is_empty({"hits": {"total": {"value": 0}, "hits": []}}), is_empty({"ids": [[]], "docs": [[]]})
    (True, True)
    >>> is_empty("No relevant documents found."), is_empty("No refunds after 30 days, see page 3.")
    (True, False)
    """
    if isinstance(value, str):
        try:
            decoded = json.loads(value)
        except (ValueError, RecursionError):
            text = value.strip()
            return not text or (len(text) <= LONGEST_NOTHING and _NOTHING.match(text) is not None)
        return decoded is None or is_empty(decoded)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if len(items) == 1 and isinstance(items[0], dict) and items[0].keys() >= {"type", "text"}:
            return is_empty(cast("dict[str, Any]", items[0])["text"])
        return all(isinstance(one, list) and not one for one in items)
    if not isinstance(value, dict):
        return False
    fields = cast("dict[str, Any]", value)
    texts = {name: text for name in _TEXTS if isinstance(text := fields.get(name), str)}
    found = [one for name, one in fields.items() if name.lower() in _RESULTS - texts.keys()]
    if found:
        answers = (texts[name] for name in _ANSWERS if name in texts)
        return all(map(is_empty, answers)) and all(map(_holds_nothing, found))
    counts = [fields[name] for name in _COUNTS if name in fields]
    if texts or not _THINGS.isdisjoint(fields):
        return not any(counts) and bool(texts) and all(map(is_empty, texts.values()))
    lists = [bool(cast("list[Any]", one)) for one in fields.values() if isinstance(one, list)]
    if lists:
        return not any(lists)
    if counts:
        return not any(counts)
    inner = [cast("Any", one) for one in fields.values() if isinstance(one, dict)]
    return all(map(is_empty, inner)) if inner else not fields


def _holds_nothing(value: Any) -> bool:
    """Return whether a field that is for what was found holds nothing."""
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value)
        if inner and all(isinstance(one, dict | list) for one in inner.values()):
            return all(_holds_nothing(one) for one in inner.values())  # as GraphQL answers
        return not inner or is_empty(inner)
    if isinstance(value, str):
        return is_empty(value)
    return is_empty(value) if isinstance(value, list) else not value
