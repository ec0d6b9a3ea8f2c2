"""Background maintenance of the data folder: retention, the index, unnamed calls, jobs."""
