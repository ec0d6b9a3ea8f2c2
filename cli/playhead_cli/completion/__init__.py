"""What a shell offers for a word that is begun. It loads little, because somebody waits for it."""
