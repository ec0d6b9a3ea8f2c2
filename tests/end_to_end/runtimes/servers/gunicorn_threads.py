"""gunicorn whose workers run threads."""

from gunicorn_workers import main

main("-k", "gthread", "--threads", "4")
