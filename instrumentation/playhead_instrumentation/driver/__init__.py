"""What a boundary asks. It does not know whether the world answers or, from `playback`, a tape."""
