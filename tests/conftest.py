"""What holds for every test."""

import signal

# A shell that runs the suite in the background ignores SIGINT, and so would each program of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
