"""A thread of playhead reports a lost connection while the program holds the lock of logging."""

# ruff: noqa: E402

import faulthandler
import logging
import os
import socket
import sys

from opentelemetry.instrumentation.auto_instrumentation import initialize

faulthandler.dump_traceback_later(90, exit=True)  # where it stands, should it hang
listener = socket.create_server(("127.0.0.1", 0))
os.environ["PLAYHEAD_ENDPOINT"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
initialize()
connection, _ = listener.accept()

import eventlet

eventlet.monkey_patch()
reading, writing = os.pipe()
standard_error = os.dup(2)
os.dup2(writing, 2)
logging.lastResort.acquire()
connection.close()
listener.close()
said = os.read(reading, 4096).decode()
logging.lastResort.release()
os.dup2(standard_error, 2)
print("playhead:" in said)
sys.exit(3)
