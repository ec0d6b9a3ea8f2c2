"""The program: ``URL FOLDER MODULE:CLASS CASE…``, where the SDKs lie in FOLDER."""

import sys
import warnings
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    url, folder, adapter, *wanted = sys.argv[1:]
    sys.path[:0] = [folder, str(Path(__file__).parents[2])]
    from support.sdks.cases import perform

    module, _, name = adapter.partition(":")
    make = getattr(import_module(f"support.sdks.{module}"), name)
    for case in wanted:
        sys.stdout.write(perform(make, url, case) + "\n")
