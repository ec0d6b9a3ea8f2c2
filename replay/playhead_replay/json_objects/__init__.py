"""Types of the JSON objects that the API and ``--json`` have in common."""
