"""The common part of the SQL engines: tables, and the statements that read and write them."""
