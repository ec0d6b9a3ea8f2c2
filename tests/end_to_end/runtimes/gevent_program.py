"""Greenlets, a thread and a server, all of them greenlets."""

# ruff: noqa: E402

from gevent import monkey

monkey.patch_all()

import http.server
import queue
import sys
import threading
import time
import urllib.request

import gevent


def work(number):
    time.sleep(0.01 * number)
    return number * 2


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"answered")

    def log_message(self, *_):
        pass


jobs = [gevent.spawn(work, number) for number in range(5)]
gevent.joinall(jobs)
print([job.value for job in jobs])
found = queue.Queue()
thread = threading.Thread(target=lambda: found.put("put by a thread"))
thread.start()
print(found.get())
thread.join()
server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
serving = gevent.spawn(server.serve_forever)
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read())
serving.kill()
server.server_close()
sys.exit(3)
