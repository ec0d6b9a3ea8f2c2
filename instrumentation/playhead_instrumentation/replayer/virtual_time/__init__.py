"""Virtual time: the clock, the gate and the reads of a replay whose tape holds no clock."""
