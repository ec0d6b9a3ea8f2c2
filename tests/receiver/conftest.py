"""Settings for the tests of the receiver."""

from playhead_receiver.storage.sqlite import overwriting

# Tests check the files after a deletion, and on a busy machine overwriting takes long.
overwriting.LONGEST_S = 60.0
