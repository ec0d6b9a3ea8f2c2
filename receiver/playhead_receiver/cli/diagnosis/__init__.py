"""What ``playhead doctor`` finds out: one check per matter, and the source of the program."""
