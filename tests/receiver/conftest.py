"""What holds for the tests of the receiver."""

from playhead_receiver.storage.sqlite import overwriting

# How long overwriting takes says how busy the machine is, and tests look at the files after a deletion.
overwriting.LONGEST_S = 60.0
