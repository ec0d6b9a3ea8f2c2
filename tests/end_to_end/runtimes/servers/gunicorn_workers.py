"""gunicorn with an application that asks a server of its own; workers by name: preload, gevent, …"""

import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

APPLICATION = """
import http.server, threading, urllib.request

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"from behind")
    def log_message(self, *_):
        pass

url = ""

def app(environ, start_response):
    global url
    if not url:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
    start_response("200 OK", [("content-type", "text/plain")])
    return [environ["PATH_INFO"].encode(), b" ", urllib.request.urlopen(url).read()]
"""
LISTENS = re.compile(r"http://127\.0\.0\.1:(\d+)")


def main(*options):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "application.py").write_text(APPLICATION)
        words = [sys.executable, "-m", "gunicorn", "application:app", "-b", "127.0.0.1:0", *options]
        log = Path(folder, "log")
        with log.open("w") as said:
            process = subprocess.Popen(words, cwd=folder, stderr=said, stdout=said)
        while not (found := LISTENS.search(log.read_text())):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        print([urllib.request.urlopen(f"{found[0]}/{number}").read() for number in range(4)])
        process.send_signal(signal.SIGTERM)
        print(process.wait())
    sys.exit(3)
