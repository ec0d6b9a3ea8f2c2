"""Tasks of Celery on Redis. As a program: a client that asks for some, and waits for the results."""

import os
import random
import sys

from celery import Celery

app = Celery("celery_tasks", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])


@app.task(name="add")
def add(first, second):
    return first + second + random.randrange(1000)


if __name__ == "__main__":
    if sys.argv[1] == "one":
        print(add.delay(1, 2).get(timeout=60))
    else:
        asked = [add.delay(number, number) for number in range(3)]
        print([one.get(timeout=60) for one in asked])
        print((add.s(1, 2) | add.s(3)).apply_async().get(timeout=60))
