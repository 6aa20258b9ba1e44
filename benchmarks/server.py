"""The far end of the benchmarks, in a process of its own: answers every request with 200 and counts connections.

``GET /connections`` tells how many connections were made since it was last asked, without counting its own.
"""

import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"id":"17"}'


@dataclass
class Server:
    """A running server: where it is, and what its certificate is trusted by."""

    url: str
    port: int
    ca_file: str | None
    process: subprocess.Popen[str]

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def connections(self) -> int:
        self.process.stdin.write("connections\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]
        return int(self.process.stdout.readline())  # type: ignore[union-attr]


def start(*, tls: bool = False, wait: float = 0.0) -> Server:
    """Start one; ``wait``: seconds before each answer."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    ca_file = _certificates(folder) if tls else None
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder) if tls else "-", str(wait)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    port = int(process.stdout.readline())  # type: ignore[union-attr]
    return Server(f"http{'s' if tls else ''}://127.0.0.1:{port}", port, ca_file, process)


def _certificates(folder: Path) -> str:
    import certifi
    import trustme

    authority = trustme.CA()
    bundle = folder / "ca.pem"
    # Beside the usual ones, since reading those is what a client pays that makes a context for each connection.
    bundle.write_bytes(Path(certifi.where()).read_bytes() + authority.cert_pem.bytes())
    mine = authority.issue_cert("127.0.0.1", "localhost")
    mine.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return str(bundle)


class _Counter:
    def __init__(self) -> None:
        self.count = 0


def _serve(connection: socket.socket, context: ssl.SSLContext | None, wait: float) -> None:
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        buffer = bytearray()
        view = bytearray(1 << 20)
        while True:
            while (end := buffer.find(b"\r\n\r\n")) < 0:
                data = connection.recv(65536)
                if not data:
                    return
                buffer += data
            head = bytes(buffer[:end]).lower()
            at = head.find(b"content-length:")
            left = (int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0) - (len(buffer) - end - 4)
            while left > 0:
                count = connection.recv_into(view)
                if not count:
                    return
                left -= count
            buffer = bytearray()
            if wait:
                time.sleep(wait)
            connection.sendall(ANSWER)
    except OSError:
        return
    finally:
        connection.close()


def main() -> None:
    folder, wait = sys.argv[1], float(sys.argv[2])
    context = None
    if folder != "-":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(folder) / "server.pem")
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    counter = _Counter()

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            counter.count += 1
            threading.Thread(target=_serve, args=(connection, context, wait), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for _ in sys.stdin:
        print(counter.count, flush=True)
        counter.count = 0


if __name__ == "__main__":
    main()
