"""gunicorn whose workers run greenlets."""

from gunicorn_workers import main

main("-k", "gevent")
