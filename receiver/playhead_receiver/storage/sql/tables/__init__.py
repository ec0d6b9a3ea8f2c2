"""One module per group of related tables, with its reads and writes."""
