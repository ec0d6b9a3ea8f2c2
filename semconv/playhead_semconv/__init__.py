"""Names of attributes, events and values, generated from the registry, and the schemas of messages."""
