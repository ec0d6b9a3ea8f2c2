"""The recording of this process: which driver it has, and the facts about the process itself."""
