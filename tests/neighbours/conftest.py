"""The tests against real programs: `make neighbours` collects those whose programs are built."""

import os

from neighbours.programs import LANGUAGES, PROGRAMS

NEEDS = {
    "test_configurations.py": ("otelcol",),
    "test_collector.py": ("otelcol",),
    "test_backends.py": ("otelcol", "jaeger"),
    "test_jaeger.py": ("jaeger",),
    "test_remote_storage.py": ("jaeger",),
    "test_prometheus.py": ("promtool",),
    "test_dashboards.py": ("prometheus",),
    "test_load.py": ("telemetrygen",),
}

collect_ignore = [
    file
    for file, needs in NEEDS.items()
    if "NEIGHBOURS_CACHE" not in os.environ or not all(PROGRAMS[name].path.exists() for name in needs)
]
if "NEIGHBOURS_CACHE" not in os.environ or not any(PROGRAMS[name].path.exists() for name in LANGUAGES):
    collect_ignore.append("test_senders.py")
