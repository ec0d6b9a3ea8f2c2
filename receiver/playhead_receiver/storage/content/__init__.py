"""The bytes of stored content: cut, shared, packed and compressed; and the places of large bodies."""
