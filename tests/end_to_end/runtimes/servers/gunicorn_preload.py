"""gunicorn that loads the application before it forks its workers."""

from gunicorn_workers import main

main("--preload", "--workers", "2")
