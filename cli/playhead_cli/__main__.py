"""``python -m playhead_cli`` is ``playhead``, also where the script is not on the path."""

from playhead_cli import main

if __name__ == "__main__":
    main()
