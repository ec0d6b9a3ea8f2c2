"""Gates that keep an order: those of strict recordings, replays and forks."""
