"""OTLP encoded by hand, without a protobuf library, which most agents never load."""
