"""Which pages there are, and who reads them."""

from __future__ import annotations

from pathlib import Path

from docs.readers import ROOT, Reader

README = ROOT / "README.md"
EXAMPLES = ROOT / "examples" / "README.md"
PAGES = [
    README,
    EXAMPLES,
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"),
]

READERS: dict[str, Reader] = {
    "README.md": Reader(key=False, files=()),
    "examples/README.md": Reader(key=False, files=()),
    "docs/start/five-minutes.md": Reader(files=(), installs=True),
    "docs/start/first-incident.md": Reader(key=False, files=()),
    "docs/how-to/investigate.md": Reader(files=(("agent.py", "examples/search_agent.py"),)),
    "docs/how-to/reports.md": Reader(
        files=(
            ("agent.py", "examples/planning_agent.py"),
            ("failing_agent.py", "examples/failing_agent.py"),
        )
    ),
    "docs/how-to/services.md": Reader(files=(("service.py", "examples/refund_service.py"),)),
    "docs/how-to/security-quick-start.md": Reader(certificate=True),
    "docs/how-to/team.md": Reader(certificate=True),
    "docs/how-to/postgresql.md": Reader(database=True),
}
"""Readers that have something else than a key and an agent."""


def name_of(page: Path) -> str:
    """Its path in the repository."""
    return (
        page.resolve().relative_to(ROOT).as_posix() if page.resolve().is_relative_to(ROOT) else page.name
    )


def reader_of(page: Path) -> Reader:
    """Who reads a page."""
    return READERS.get(name_of(page), Reader())
