"""The recording of this process, found by everything else: its driver, the facts of the process."""
