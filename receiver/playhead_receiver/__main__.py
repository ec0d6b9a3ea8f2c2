"""``python -m playhead_receiver`` is ``playhead``, also where the script is not on the path."""

from playhead_receiver.cli import main

if __name__ == "__main__":
    main()
