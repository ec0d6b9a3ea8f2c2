"""``python -m playhead_instrumentation record|replay|…``: see `command_line`."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
import _signal as signal  # built in: ^C may come at any moment, so nothing here reads a file
import sys


def main(words: list[str]) -> None:
    """Run what ``words`` say. ^C before the program begins ends this as it ends any interpreter then."""
    if words[:1] == ["command"]:
        from playhead_instrumentation.bootstrap.early import run_instead

        run_instead(words[1:])
    handler = signal.getsignal(signal.SIGINT)
    ours = handler is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from playhead_instrumentation.command_line import prepared, run

    program = prepared(words)
    if ours:
        signal.signal(signal.SIGINT, handler)
    run(program)


if __name__ == "__main__":
    main(sys.argv[1:])
