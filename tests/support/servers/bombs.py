"""Small bodies that decompress to large ones, and a gRPC client that sends such a body unchanged."""

from __future__ import annotations

import socket
import struct
import zlib

import h2.config
import h2.connection
import h2.events

PIECE_BYTES = 1 << 20


def deflate_bomb(size_bytes: int) -> bytes:
    """A raw deflate stream of zeros, made of one repeated piece."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    piece = packer.compress(bytes(PIECE_BYTES)) + packer.flush(zlib.Z_FULL_FLUSH)
    return piece * (size_bytes // PIECE_BYTES) + b"\x03\x00"


def gzip_bomb(size_bytes: int) -> bytes:
    """A gzip bomb; its checksum is wrong, which is detected only at its end."""
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + deflate_bomb(size_bytes) + bytes(8)


def zstd_bomb(size_bytes: int) -> bytes:
    """Zeros as one zstd frame of run-length blocks of 128 KiB."""
    blocks = size_bytes // (1 << 17)
    header = b"\x28\xb5\x2f\xfd\x00\x38"
    block = struct.pack("<I", 1 << 17 << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", 1 << 17 << 3 | 1 << 1 | 1)[:3] + b"\0"
    return header + block * (blocks - 1) + last


def grpc_status(endpoint: str, path: str, message: bytes, encoding: str = "gzip") -> int:
    """Send one compressed message. Returns the ``grpc-status`` of the answer."""
    host, _, port = endpoint.rpartition(":")
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    data = b"\x01" + struct.pack(">I", len(message)) + message
    with socket.create_connection((host, int(port)), timeout=60) as opened:
        connection.initiate_connection()
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", endpoint),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("grpc-encoding", encoding),
        ]
        connection.send_headers(1, headers)
        while True:
            while data:
                size = min(
                    len(data),
                    connection.local_flow_control_window(1),
                    connection.max_outbound_frame_size,
                )
                if not size:
                    break
                connection.send_data(1, data[:size], end_stream=size == len(data))
                data = data[size:]
            opened.sendall(connection.data_to_send())
            for event in connection.receive_data(opened.recv(1 << 16)):
                if isinstance(event, (h2.events.TrailersReceived, h2.events.ResponseReceived)):
                    found = {str(name, "ascii"): value for name, value in event.headers}
                    if "grpc-status" in found:
                        return int(found["grpc-status"])
                if isinstance(event, h2.events.DataReceived):
                    connection.acknowledge_received_data(event.flow_controlled_length, 1)
