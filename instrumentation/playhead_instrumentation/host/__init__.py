"""The machine below the program: files, databases, processes. A recording of exchanges loads none."""
