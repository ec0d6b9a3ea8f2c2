"""Each view of the pages: its address, and what is there when it is shown."""

import re
from pathlib import Path

import httpx

PICTURES = Path(__file__).parents[3] / "logs" / "pages"
VIEWS = {
    "runs": ("/", "main tbody a"),
    "run": ("/?run=refund-1", ".detail .problem"),
    "findings": ("/?run=refund-1&step=findings", ".findings td"),
    "tree": ("/?run=refund-1&rows=tree", ".row[aria-expanded]"),
    "everything": ("/?run=refund-1&rows=everything", ".row"),
    "raw": ("/?run=refund-1&step=1&tab=raw", ".detail h3"),
    "attributes": ("/?run=refund-1&step=1&tab=attributes", ".detail details"),
    "did": ("/?run=refund-1&step=1&tab=did", ".detail .note"),
    "again": ("/?run=refund-1&step=3&tab=again", ".detail .command"),
    "transcript": ("/?view=transcript&run=refund-1", "article"),
    "playhead": ("/?view=playhead&run=refund-1&after=11", ".said"),
    "compare": ("/?view=compare&left=refund-1&right=last", "main table"),
    "sessions": ("/?view=sessions", ".empty, .sessions"),
    "live": ("/?view=live", ".empty"),
    "flow": ("/?view=flow", ".graph .node"),
    "picker": ("/?view=compare&left=refund-1", ".empty, .picker"),
    "find": ("/?view=find&q=%22order%2081%22", "mark"),
    "operations": ("/?view=operations", "table[aria-label=retention]"),
}


def main_script(endpoint: str) -> str:
    """The address of the script that the page begins with."""
    found = re.search(r'src="(/web/assets/index-[^"]*\.js)"', httpx.get(endpoint).text)
    assert found
    return endpoint + found[1]
