"""How the files of a run look: its working folder, and what it made."""
