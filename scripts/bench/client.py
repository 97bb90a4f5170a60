"""A client over a kept connection, with as little Python as possible between the two readings of the clock."""

import re
import socket
import time


def request(path: str, **headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: keep-alive"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


# What Prometheus 2.42 sends.
AS_PROMETHEUS = {
    "Accept": "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "Accept_Encoding": "gzip",
}


class Client:
    """One connection."""

    LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: (\d+)\r\n")

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray(1 << 23)
        self.view = memoryview(self.buffer)
        self.length = 0

    def scrape(self, asked: bytes) -> float:
        """Asks once; the seconds until the last byte was there."""
        began = time.perf_counter()
        self.socket.sendall(asked)
        self.length = 0
        head = wanted = None
        while wanted != self.length:
            received = self.socket.recv_into(self.view[self.length :])
            if received == 0:
                raise ConnectionError("the server closed the connection, or its answer is too long")
            self.length += received
            if head is None and (end := self.buffer.find(b"\r\n\r\n", 0, self.length)) > 0:
                head = end + 4
                length = self.LENGTH.search(self.buffer, 0, head)
                wanted = head + int(length[1]) if length else None
            if head is not None and length is None and self.buffer.endswith(b"\r\n0\r\n\r\n", 0, self.length):
                break
        return time.perf_counter() - began

    def body(self) -> bytes:
        """The body of the last answer, put together again if it came in chunks."""
        head, _, rest = bytes(self.view[: self.length]).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(f"the server answers {head.splitlines()[0].decode()}")
        if b"chunked" not in head:
            return rest
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            body += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]
        return body
