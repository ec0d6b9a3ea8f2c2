"""Runs this folder as a program; see `entering`."""

from __future__ import annotations

import importlib
import os
import sys

if __name__ == "__main__":
    here = sys.path.pop(0)
    sys.path.append(os.path.dirname(here))
    importlib.import_module(f"{os.path.basename(here)}.entering").main(sys.argv[1:])
