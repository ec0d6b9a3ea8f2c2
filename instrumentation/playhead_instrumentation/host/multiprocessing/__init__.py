"""What processes of `multiprocessing` tell each other."""
