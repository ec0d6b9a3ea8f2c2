"""The working folder of a run at any moment: its snapshots, and what the tape says of files since."""
