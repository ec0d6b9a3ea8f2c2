"""What holds for every test."""

import signal

import pytest

# A shell that runs the suite in the background ignores SIGINT, and so would each program of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-outputs", action="store_true", help="Write the outputs of tests/cli/outputs anew."
    )
