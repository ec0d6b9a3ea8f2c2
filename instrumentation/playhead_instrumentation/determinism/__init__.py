"""What makes an execution repeatable: clocks, entropy, turns. A recording of exchanges loads none."""
