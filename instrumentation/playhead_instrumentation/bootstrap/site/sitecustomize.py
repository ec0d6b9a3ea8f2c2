"""Runs at the start of Python children of a recorded process. Not imported by anything.

A child may be another Python without playhead: then nothing happens. A `sitecustomize` that this one
shadows is run as well. The program finds the search path that it has without playhead.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))


def _run_shadowed() -> None:
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
try:
    if os.environ.get("PLAYHEAD_REPLAY_WORKER"):
        from playhead_instrumentation.bootstrap.replay_process import start_worker as launch
    else:
        from playhead_instrumentation.bootstrap.launch import launch
except ImportError:
    pass
else:
    launch()
_run_shadowed()
