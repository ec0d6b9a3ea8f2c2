"""What a boundary asks: the driver, made of source, gate and sink, and the calls that it opens."""
