"""The SMTP edge against aiosmtpd, another author's server: what arrives, what is said of what does not, what is kept
open.
"""

import asyncio
import email
import email.policy
import os
import pickle
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pytest
import trustme
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from returns.result import Failure, Success

from messaging_adapters.smtp import SmtpEdge
from messaging_core.config.settings import Http
from messaging_core.errors import Denied, Invalid, MediaUnreadable, Unanswered, Unreachable
from messaging_core.message import FileFacts
from messaging_core.secrecy import Secret, Secrets
from messaging_core.wire.http import FileRef
from messaging_core.wire.mail import Attachment, Mail, MailReply, MailRequest, Said

PASSWORD, SHORT = "FAKE-pässword", "FAKE-wrong-one"
SECRETS = Secrets({"mail.password": PASSWORD, "mail.wrong": "FAKE-wrong-one"})
MAIL = Mail((("From", "bot@mail.test"), ("Subject", "hello")), "first\n.dot\n..dots\nlast")


class Handler:
    """Keeps what it gets. A recipient named like a fault brings it about."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []
        self.froms: list[str] = []

    async def handle_RCPT(self, server, session, envelope, address, options):  # type: ignore[no-untyped-def]
        name = address.partition("@")[0]
        if name == "unknown":
            return "550 5.1.1 User unknown"
        if name == "later":
            return "450 4.2.0 Greylisted"
        if name == "bye":
            await server.push("421 4.3.2 Closing")
            server.transport.close()
            return "421 never read"
        if name == "echo":
            return f"550 5.7.1 you are {SHORT}"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # type: ignore[no-untyped-def]
        names = {address.partition("@")[0] for address in envelope.rcpt_tos}
        if "drop" in names:
            server.transport.abort()
            return "250 never read"
        if "slow" in names:
            await asyncio.sleep(0.8)
        if "spam" in names:
            return "554 5.7.1 This looks like spam"
        self.mails.append(envelope.original_content)
        self.froms.append(envelope.mail_from)
        return "250 2.0.0 OK queued"


def log_in(server, session, envelope, mechanism, data):  # type: ignore[no-untyped-def]
    good = isinstance(data, LoginPassword) and data.password == PASSWORD.encode() and data.login == b"alice@mail.test"
    return AuthResult(success=good, handled=False)


class Server:
    """aiosmtpd in a thread: ``port`` with STARTTLS, ``tls_port`` with TLS from the start, ``bare_port`` without."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.handler = Handler()
        self.connections = 0
        self.context = context
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.ready = threading.Event()

    def _protocol(self, **more):  # type: ignore[no-untyped-def]
        self.connections += 1
        return SMTP(self.handler, hostname="mail.test", loop=self.loop, **more)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._listen())
        self.ready.set()
        self.loop.run_forever()
        for server in self.servers:
            server.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0.05))
        self.loop.close()

    async def _listen(self) -> None:
        login = {"authenticator": log_in, "data_size_limit": 100_000}
        listen = self.loop.create_server
        self.servers = [
            await listen(lambda: self._protocol(tls_context=self.context, **login), "127.0.0.1", 0),
            await listen(lambda: self._protocol(auth_require_tls=False, **login), "127.0.0.1", 0, ssl=self.context),
            await listen(lambda: self._protocol(enable_SMTPUTF8=True), "127.0.0.1", 0),
        ]
        self.port, self.tls_port, self.bare_port = (one.sockets[0].getsockname()[1] for one in self.servers)

    def __enter__(self) -> "Server":
        self.thread.start()
        assert self.ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[trustme.CA, str]:
    authority = trustme.CA()
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return authority, str(path)


@pytest.fixture
def server(authority):  # type: ignore[no-untyped-def]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority[0].issue_cert("localhost", "127.0.0.1").configure_cert(context)
    with Server(context) as server:
        yield server


@pytest.fixture
def edge(authority):  # type: ignore[no-untyped-def]
    edge = SmtpEdge(Http(connect_timeout=2.0, read_timeout=0.5, ca_file=authority[1]), SECRETS)
    yield edge
    edge.close()


def request(port: int, *recipients: str, mail: Mail | None = MAIL, **more) -> MailRequest:  # type: ignore[no-untyped-def]
    to = recipients or ("bob@mail.test",)
    login = {"username": "alice@mail.test", "password": Secret("mail.password")}
    return MailRequest(
        "localhost",
        port,
        **{"security": "starttls", "sender": "bot@mail.test", **login, **more},
        recipients=to,
        mail=mail,
    )


def parsed(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    assert not message.defects
    return message


ACCEPTED = Success(MailReply("accepted", Said(250, "2.0.0 OK queued")))


def test_a_mail_arrives_after_starttls_and_login_as_it_was_written(server, edge):
    assert edge.send(request(server.port)) == ACCEPTED
    assert parsed(server.handler.mails[0]).get_content() == "first\r\n.dot\r\n..dots\r\nlast\r\n"
    assert server.handler.froms == ["bot@mail.test"]


@pytest.mark.parametrize("security", ["tls", "either"])
def test_tls_from_the_first_octet_also_where_only_the_server_shows_it(server, edge, security):
    assert edge.send(request(server.tls_port, security=security)) == ACCEPTED


def test_a_server_that_speaks_first_gets_starttls(server, edge):
    assert edge.send(request(server.port, security="either")) == ACCEPTED


@pytest.mark.parametrize("security", ["starttls", "either"])
def test_without_an_offer_of_encryption_nothing_is_sent(server, edge, security):
    outcome = edge.send(request(server.bare_port, security=security))
    assert outcome == Failure(Denied(detail="the server offers no encryption (STARTTLS), so nothing was sent"))
    assert server.handler.mails == []


def test_a_certificate_that_is_not_trusted_stops_the_send_before_the_password(server):
    outcome = SmtpEdge(Http(), SECRETS).send(request(server.port))
    assert isinstance(outcome.failure(), Unreachable)
    assert "certificate is not trusted" in str(outcome.failure())
    assert server.handler.mails == []


def test_a_wrong_password_is_the_server_s_to_tell_and_shows_nowhere(server, edge):
    reply = edge.send(request(server.port, password=Secret("mail.wrong"))).unwrap()
    assert (reply.stage, reply.said.code) == ("login", 535)
    assert "FAKE" not in repr(reply)


def test_what_a_server_repeats_of_a_secret_is_masked(server, edge):
    reply = edge.send(request(server.port, "echo@mail.test")).unwrap()
    assert reply.refused == (("echo@mail.test", Said(550, "5.7.1 you are ***")),)


def test_recipients_that_are_refused_do_not_keep_the_mail_from_the_others(server, edge):
    reply = edge.send(request(server.port, "unknown@mail.test", "bob@mail.test", "later@mail.test")).unwrap()
    assert reply.stage == "accepted"
    assert [(one, said.code) for one, said in reply.refused] == [("unknown@mail.test", 550), ("later@mail.test", 450)]
    assert len(server.handler.mails) == 1


def test_when_all_are_refused_nothing_is_sent_and_the_connection_is_good_for_the_next(server, edge):
    reply = edge.send(request(server.port, "unknown@mail.test")).unwrap()
    assert (reply.stage, server.handler.mails) == ("recipients", [])
    assert edge.send(request(server.port)) == ACCEPTED
    assert server.connections == 1


def test_a_refusal_of_the_content_is_told_as_such(server, edge):
    reply = edge.send(request(server.port, "spam@mail.test")).unwrap()
    assert (reply.stage, reply.said) == ("content", Said(554, "5.7.1 This looks like spam"))


def test_a_server_that_says_goodbye_has_not_taken_the_mail(server, edge):
    reply = edge.send(request(server.port, "bye@mail.test", "bob@mail.test")).unwrap()
    assert (reply.stage, reply.said.code, server.handler.mails) == ("recipients", 421, [])
    assert edge.send(request(server.port)) == ACCEPTED


def test_a_connection_that_breaks_after_the_final_dot_may_have_delivered(server, edge):
    assert edge.send(request(server.port, "drop@mail.test")) == Failure(
        Unanswered("the connection broke before the answer")
    )


def test_silence_after_the_final_dot_may_have_delivered(server, edge):
    assert edge.send(request(server.port, "slow@mail.test")) == Failure(Unanswered("no answer after 0.5 s"))


def test_no_connection_is_told_without_an_address(edge):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert edge.send(request(port)) == Failure(Unreachable("could not connect: refused"))
    assert edge.send(replace(request(25), host="nowhere.invalid")) == Failure(Unreachable("the host is not known"))


def test_a_server_that_never_greets_is_given_up(edge):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = edge.send(request(silent.getsockname()[1], security="none"))
        assert outcome == Failure(Unreachable("no answer within 0.5 s"))


def test_a_connection_that_breaks_before_the_final_dot_has_delivered_nothing(edge):
    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as wire:
            wire.write(b"220 mail.test\r\n")
            wire.flush()
            for line in wire:
                if line.startswith(b"DATA"):
                    wire.write(b"354 go on\r\n")
                    wire.flush()
                    return
                wire.write(b"250 fine\r\n")
                wire.flush()

    long = replace(MAIL, text="x" * 8_000_000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        outcome = edge.send(
            request(listener.getsockname()[1], mail=long, security="none", username=None, password=None)
        )
        thread.join()
    assert isinstance(outcome.failure(), Unreachable)


def test_a_mail_over_the_server_s_size_is_not_begun(server, edge):
    outcome = edge.send(request(server.port, mail=replace(MAIL, text="x" * 100_000)))
    assert isinstance(outcome.failure(), Invalid)
    assert "the server takes 100000" in str(outcome.failure())
    assert edge.send(request(server.port)) == ACCEPTED


def test_addresses_beyond_ascii_need_a_server_that_takes_them(server, edge):
    strange = {"security": "none", "username": None, "password": None}
    assert edge.send(request(server.bare_port, "büro@mail.test", **strange)) == ACCEPTED
    assert isinstance(edge.send(request(server.port, "büro@mail.test")).failure(), Invalid)


def test_one_connection_serves_mail_after_mail(server, edge):
    for _ in range(20):
        assert edge.send(request(server.port)) == ACCEPTED
    assert (len(server.handler.mails), server.connections) == (20, 1)


def test_a_connection_that_the_server_closed_meanwhile_is_replaced(server, edge):
    assert edge.send(request(server.port)) == ACCEPTED
    ((_, kept),) = next(iter(edge._idle.values()))
    kept._socket.shutdown(socket.SHUT_RDWR)
    assert edge.send(request(server.port)) == ACCEPTED
    assert server.connections == 2


def test_threads_share_the_edge_and_never_a_connection(server, edge):
    mails = [replace(MAIL, text=f"number {index}") for index in range(24)]
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda mail: edge.send(request(server.port, mail=mail)), mails))
    assert outcomes == [ACCEPTED] * 24
    got = sorted(parsed(raw).get_content().strip() for raw in server.handler.mails)
    assert got == sorted(mail.text for mail in mails)
    assert server.connections <= 6


def facts_of(path: Path) -> FileFacts:
    found = os.stat(path)
    return FileFacts(
        str(path), str(path), path.name, found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
    )


def with_file(path: Path) -> Mail:
    return replace(MAIL, attachments=(Attachment("däta.bin", "application/octet-stream", FileRef(facts_of(path))),))


@pytest.mark.parametrize("size", [1, 56, 57, 58, 64 * 1024, 70_001])
def test_a_file_arrives_octet_for_octet(server, edge, tmp_path, size):
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(size))
    assert edge.send(request(server.port, mail=with_file(path))) == ACCEPTED
    text, attached = parsed(server.handler.mails[0]).iter_parts()
    assert attached.get_content() == path.read_bytes()
    assert attached.get_filename() == "däta.bin"


def test_a_file_that_changed_since_the_look_is_not_sent(server, edge, tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(b"one")
    mail = with_file(path)
    path.write_bytes(b"two!")
    assert isinstance(edge.send(request(server.port, mail=mail)).failure(), MediaUnreadable)
    assert server.handler.mails == []


def test_a_probe_logs_in_and_hands_nothing_over(server, edge):
    assert edge.send(request(server.port, mail=None)).unwrap().stage == "accepted"
    assert server.handler.mails == []


def test_a_request_holds_no_password():
    assert "FAKE" not in repr(request(25))
    assert pickle.loads(pickle.dumps(request(25))) == request(25)
