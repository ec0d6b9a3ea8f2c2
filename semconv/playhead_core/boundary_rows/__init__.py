"""The rows of the table of boundaries, by what they are about."""
