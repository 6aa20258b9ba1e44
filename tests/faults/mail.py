"""The fault matrix of mail: a scripted SMTP server on real sockets, which fails its first connection at a given stage.

``MailServer(fault)`` speaks plain ESMTP. A fault names the stage at which something else is done than to go on: the
``greeting``, the answer to ``EHLO``, ``MAIL``, ``RCPT``, ``DATA``, in the middle of the ``content``, or at the final
``dot``. The connections after the first are served well. ``mails`` holds what was taken over.
"""

import contextlib
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from messaging_adapters.messenger import Messenger
from tests.faults.matrix import DELIVERED, FAILED, PATIENCE, UNCONFIRMED, Cell, timed

PARTIAL = "partial"


@dataclass(frozen=True)
class MailFault:
    """``does``: bytes to answer, or "close", "reset", "hang", "drip". ``told``: the statuses that are true, with how
    many mails the server then has. ``lasting``: also at each later connection. ``error``: the class of the error."""

    name: str
    stage: str
    does: bytes | str
    told: tuple[tuple[str, int], ...]
    lasting: bool = False
    error: str = ""
    taken: bool = False
    slow: bool = False
    to: tuple[str, ...] = ("you@mail.test",)


def once(status: str, mails: int) -> tuple[tuple[str, int], ...]:
    return ((status, mails),)


AGAIN, NO = once(DELIVERED, 1), once(FAILED, 0)
LOST = ((UNCONFIRMED, 0), (DELIVERED, 1))
"""Between the go-ahead and the dot the two ends cross: either the loss was seen before the dot, and the mail is handed
over again, or the dot was on its way, and nobody can know."""

TWO = ("you@mail.test", "other@mail.test")

FAULTS = (
    MailFault("no greeting", "greeting", "hang", NO, lasting=True, error="Unreachable"),
    MailFault("greeting that drips", "greeting", "drip", NO, lasting=True, error="Unreachable"),
    MailFault("closed at the greeting", "greeting", "close", AGAIN),
    MailFault("not SMTP", "greeting", b"HTTP/1.1 400 Bad Request\r\n\r\n", NO, lasting=True),
    MailFault("greeting without an end", "greeting", b"220-" + b"x" * 100 + b"\r\n", NO, lasting=True),
    MailFault("greeting 554", "greeting", b"554 5.7.1 No mail from you\r\n", NO, error="Denied"),
    MailFault("greeting 421", "greeting", b"421 4.3.2 Busy\r\n", AGAIN),
    MailFault("closed at EHLO", "EHLO", "close", AGAIN),
    MailFault("sender 451", "MAIL", b"451 4.3.0 Later\r\n", AGAIN),
    MailFault("sender 550", "MAIL", b"550 5.7.1 Not you\r\n", NO, error="Denied"),
    MailFault("closed at the sender", "MAIL", "close", AGAIN),
    MailFault("recipient 450 (greylisted)", "RCPT", b"450 4.2.0 Greylisted\r\n", AGAIN),
    MailFault("recipient 550", "RCPT", b"550 5.1.1 Unknown\r\n", NO, error="InvalidRecipient"),
    MailFault("one recipient of two 550", "RCPT", b"550 5.1.1 Unknown\r\n", once(PARTIAL, 1), to=TWO),
    MailFault("one recipient of two 450", "RCPT", b"450 4.2.0 Greylisted\r\n", once(PARTIAL, 1), to=TWO),
    MailFault("421 at the recipient", "RCPT", b"421 4.3.2 Closing\r\n", AGAIN),
    MailFault("DATA 451", "DATA", b"451 4.3.0 Later\r\n", AGAIN),
    MailFault("DATA 554", "DATA", b"554 5.5.1 No\r\n", NO),
    MailFault("reset at DATA", "DATA", "reset", AGAIN),
    MailFault("no answer at DATA", "DATA", "hang", AGAIN),
    MailFault("closed inside the content", "content", "close", LOST),
    MailFault("reset inside the content", "content", "reset", LOST),
    MailFault("dot 451", "dot", b"451 4.3.0 Later\r\n", AGAIN),
    MailFault("dot 452 (full)", "dot", b"452 4.2.2 Full\r\n", AGAIN),
    MailFault("dot 552", "dot", b"552 5.3.4 Too big\r\n", NO, error="Invalid"),
    MailFault("dot 554 (spam)", "dot", b"554 5.7.1 Spam\r\n", NO, error="Rejected"),
    MailFault("dot 450 for ever", "dot", b"450 4.2.0 Later\r\n", NO, lasting=True),
    MailFault("closed after the dot", "dot", "close", once(UNCONFIRMED, 1), taken=True),
    MailFault("reset after the dot", "dot", "reset", once(UNCONFIRMED, 1), taken=True),
    MailFault("no answer after the dot", "dot", "hang", once(UNCONFIRMED, 1), taken=True),
    MailFault("answer that drips after the dot", "dot", "drip", once(UNCONFIRMED, 1), taken=True),
    MailFault("answer that is none after the dot", "dot", b"\x00\xff\r\n", once(UNCONFIRMED, 1), taken=True),
    MailFault("answer of 1 GB after the dot", "dot", "flood", once(UNCONFIRMED, 1), taken=True, slow=True),
)  # fmt: skip


@dataclass
class MailServer:
    fault: MailFault
    tls: ssl.SSLContext | None = None
    auth: bool = False
    mails: list[bytes] = field(default_factory=list)
    connections: int = 0
    seen: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._over = threading.Event()
        self._open: list[socket.socket] = []
        self._done = False

    def __enter__(self) -> "MailServer":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            self._converse(connection, connection.makefile("rb"))
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _converse(self, connection: socket.socket, lines: Any) -> None:
        recipients = 0
        if not self._say(connection, "greeting", b"220 mail.test ESMTP\r\n"):
            return
        for line in lines:
            self.seen.append(line)
            verb = line[:4].upper().strip().decode("ascii", "replace")
            match verb:
                case "EHLO":
                    login = b"250-AUTH PLAIN LOGIN\r\n" if self.auth else b""
                    going = self._say(connection, verb, b"250-mail.test\r\n" + login + b"250 SIZE 1000000\r\n")
                case "AUTH":
                    going = self._say(connection, verb, b"235 2.7.0 Welcome\r\n")
                case "MAIL":
                    recipients = 0
                    going = self._say(connection, verb, b"250 OK\r\n")
                case "RCPT":
                    before = self._done
                    going = self._say(connection, verb, b"250 OK\r\n")
                    recipients += not (self._done and not before and self.fault.stage == "RCPT")
                case "DATA":
                    going = self._say(connection, verb, b"354 Go\r\n") and self._content(connection, lines)
                case "QUIT":
                    connection.sendall(b"221 Bye\r\n")
                    return
                case _:
                    connection.sendall(b"250 OK\r\n")
                    going = True
            if not going:
                return

    def _content(self, connection: socket.socket, lines: Any) -> bool:
        if self.fault.stage == "content" and self._due():
            lines.readline()
            self._act(connection, str(self.fault.does))
            return False
        content = b""
        for line in lines:
            self.seen.append(line)
            if line == b".\r\n":
                refuses = isinstance(self.fault.does, bytes) and self.fault.does[:1] in (b"4", b"5")
                faulty = self.fault.stage == "dot" and (not self._done or self.fault.lasting)
                if not faulty or not refuses:
                    self.mails.append(content)
                return self._say(connection, "dot", b"250 2.0.0 OK queued\r\n")
            content += line
        return False

    def _due(self) -> bool:
        due = not self._done or self.fault.lasting
        self._done = True
        return due

    def _say(self, connection: socket.socket, stage: str, good: bytes) -> bool:
        """Answer as the stage has it; whether the conversation goes on."""
        if stage != self.fault.stage or not self._due():
            connection.sendall(good)
            return True
        if isinstance(self.fault.does, bytes):
            connection.sendall(self.fault.does)
            return not self.fault.does.startswith((b"421", b"\x00", b"220-"))
        if self.fault.does == "drip":
            for at in range(len(good) * 4):
                connection.sendall(good[at % (len(good) - 2) :][:1])
                if self._over.wait(0.1):
                    break
            return False
        self._act(connection, self.fault.does)
        return False

    def _act(self, connection: socket.socket, does: str) -> None:
        match does:
            case "hang":
                self._over.wait(30)
            case "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                socket.socket(fileno=connection.detach()).close()
            case "flood":
                block = b"250-" + b"x" * 500 + b"\r\n"
                for _ in range(10**9 // (len(block) * 100)):
                    connection.sendall(block * 100)


def settings_of(port: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "email",
        "smtp_host": "127.0.0.1",
        "smtp_port": port,
        "smtp_tls": False,
        "from_address": "bot@mail.test",
        **more,
    }


def outcome_of(fault: MailFault) -> tuple[Cell, MailServer]:
    """Send one mail, the server having ``fault``."""
    with MailServer(fault) as server:
        config = {"channels": {"c": settings_of(server.port, to=list(fault.to))}, **PATIENCE}
        with Messenger.from_config(config) as messenger:
            outcome, seconds = timed(lambda: messenger.send("Hello **you**"))
            time.sleep(0.02)
            return Cell(outcome, server.connections, len(server.mails), seconds), server
