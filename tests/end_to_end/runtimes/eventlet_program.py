"""A pool of greenlets, and a thread that is one."""

# ruff: noqa: E402

import eventlet

eventlet.monkey_patch()

import queue
import sys
import threading
import time


def work(number):
    time.sleep(0.01 * number)
    return number * 2


print(list(eventlet.GreenPool().imap(work, range(5))))
found = queue.Queue()
thread = threading.Thread(target=lambda: found.put("put by a thread"))
thread.start()
print(found.get())
thread.join()
sys.exit(3)
