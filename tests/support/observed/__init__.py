"""Programs that tests record and replay, and what each of them observes."""
