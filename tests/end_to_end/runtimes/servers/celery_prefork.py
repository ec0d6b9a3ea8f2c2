"""celery with two forked workers; broker and results are folders."""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS = """
import celery, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
app = celery.Celery("tasks", broker="filesystem://", backend=f"file://{folder}/results")
app.conf.broker_transport_options = {
    "data_folder_in": f"{folder}/queue", "data_folder_out": f"{folder}/queue",
    "control_folder": f"{folder}/control",
}

@app.task
def double(number):
    return number * 2
"""

with tempfile.TemporaryDirectory() as folder:
    for name in ("results", "queue", "control"):
        Path(folder, name).mkdir()
    Path(folder, "tasks.py").write_text(TASKS)
    sys.path.insert(0, folder)
    from tasks import double

    options = ["worker", "--pool=prefork", "--concurrency=2", "--loglevel=WARNING", "--without-gossip"]
    words = [sys.executable, "-m", "celery", "-A", "tasks", *options]
    log = Path(folder, "log")
    with log.open("w") as said:
        worker = subprocess.Popen(words, cwd=folder, stdout=said, stderr=said)
    asked = [double.delay(number) for number in range(6)]
    until = time.time() + 100
    while not all(one.ready() for one in asked):
        assert worker.poll() is None and time.time() < until, log.read_text()
        time.sleep(0.05)
    print([one.result for one in asked])
    worker.send_signal(signal.SIGTERM)
    print(worker.wait())
sys.exit(3)
