"""Marks one of several values of a parameter as long: only `make acceptance` tries it."""

from __future__ import annotations

from typing import Any

import pytest


def long(*values: Any, id: str | None = None) -> Any:
    """The value, or values, of a case. Another case of the same test stays in the suite."""
    return pytest.param(*values, marks=pytest.mark.acceptance, id=id)
