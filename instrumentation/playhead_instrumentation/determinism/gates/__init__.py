"""When something may enter the program, where order is kept: strict recordings, replays, forks."""
