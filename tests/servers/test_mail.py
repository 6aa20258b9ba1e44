"""Mail through a real submission server, read back by IMAP."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from returns.pipeline import is_successful

from messaging_adapters.smtp import SmtpEdge
from messaging_core.channels.channel import Configured
from messaging_core.channels.email import CHANNEL, Settings
from messaging_core.config.settings import Http
from messaging_core.errors import Denied, InvalidRecipient
from messaging_core.flow import Done, Stopped, drive
from messaging_core.markup.split import render
from messaging_core.markup.tree import parse
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, TextPart
from messaging_core.secrecy import Secret, Secrets
from tests.servers import mail

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server() -> Iterator[mail.MailServer]:
    with mail.running() as server:
        yield server


@pytest.fixture
def edge(server: mail.MailServer) -> Iterator[SmtpEdge]:
    edge = SmtpEdge(
        Http(ca_file=server.ca_file), Secrets({"mail.password": server.password, "mail.wrong": "FAKE-wrong"})
    )
    yield edge
    edge.close()


def send(edge: SmtpEdge, server: mail.MailServer, outgoing: Outgoing, **changes: object):  # type: ignore[no-untyped-def]
    settings = {
        "smtp_host": "localhost",
        "smtp_port": server.port,
        "from_address": "Büro Bot <alice@mail.test>",
        "username": "alice@mail.test",
        "password": Secret("mail.password"),
        **changes,
    }
    at = Configured("mail", "email", Settings(**settings))  # type: ignore[arg-type]
    ids = Ids(f"{time.time_ns() // 1_000_000}{os.urandom(4).hex()}", time.time())
    return drive(edge, CHANNEL.describe(at, outgoing, ids, {}).unwrap())


def to(*parts: TextPart | MediaPart, recipient: str = "bob@mail.test", **more: object) -> Outgoing:
    return Outgoing(CHANNEL.recipient(recipient).unwrap(), parts, **more)  # type: ignore[arg-type]


def text(markdown: str) -> TextPart:
    return TextPart(render(parse(markdown), CHANNEL.dialect))


def file(path: Path, caption: str | None = None) -> MediaPart:
    found = path.stat()
    facts = FileFacts(
        *(str(path), str(path), path.name, found.st_size),
        *(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns),
    )
    return MediaPart(facts, Kind.DOCUMENT, "application/pdf", text(caption).text if caption else None)


def arrived(server: mail.MailServer, subject: str, user: str = "bob") -> EmailMessage:
    for _ in range(50):
        found = server.mailbox(user, subject)
        if found:
            assert len(found) == 1
            return found[0]
        time.sleep(0.2)
    raise AssertionError(f"no mail about {subject}")


@pytest.mark.parametrize("port", ["port", "tls_port"])
def test_a_text_arrives_as_plain_text_and_html_over_starttls_and_over_tls(edge, server, port):
    done = send(
        edge, server, to(text(f"Grüße über {port}\n\n**fett** & 東京\n.")), smtp_port=getattr(server, port)
    ).unwrap()
    message = arrived(server, f"ber {port}")
    assert message["Message-ID"] == done.delivered[0].id
    assert str(message["Subject"]) == f"Grüße über {port}"
    assert str(message["From"]) == "Büro Bot <alice@mail.test>"
    plain, html = message.iter_parts()
    assert plain.get_content().splitlines() == [f"Grüße über {port}", "", "fett & 東京", "."]
    assert "<strong>fett</strong> &amp; 東京" in html.get_content()


def test_an_answer_hangs_in_the_thread_whatever_the_length_of_its_id(edge, server):
    parent = f"<{'x' * 150}@mail.example>"
    send(edge, server, to(text("the answer"), reply_to=parent, subject="A question")).unwrap()
    message = arrived(server, "Re: A question")
    assert (message["In-Reply-To"].strip(), message["References"].strip()) == (parent, parent)
    assert message["Auto-Submitted"] == "auto-generated"


def test_a_file_of_20_mb_with_a_name_beyond_ascii_arrives_octet_for_octet(edge, server, tmp_path):
    path = tmp_path / 'Größe, "2".pdf'
    path.write_bytes(os.urandom(20_000_000))
    send(edge, server, to(file(path, "large file"))).unwrap()
    _, attached = arrived(server, "large file").iter_parts()
    assert attached.get_filename() == path.name
    assert hashlib.sha256(attached.get_content()).digest() == hashlib.sha256(path.read_bytes()).digest()


def test_one_of_several_recipients_is_refused_and_the_others_are_reached(edge, server):
    both = ("bob@mail.test", "nobody@mail.test")
    done = send(edge, server, to(text("to both of you"), recipient=", ".join(both)), to=both).unwrap()
    assert isinstance(done, Done)
    assert [one.recipient for one in done.undelivered] == ["nobody@mail.test"]
    assert isinstance(done.undelivered[0].cause, InvalidRecipient)
    assert done.delivered[0].recipient == "bob@mail.test"
    arrived(server, "to both of you")


def test_an_unknown_recipient_is_the_recipient_s_fault(edge, server):
    stopped = send(edge, server, to(text("x"), recipient="nobody@mail.test")).failure()
    assert isinstance(stopped, Stopped)
    assert isinstance(stopped.cause, InvalidRecipient)


def test_the_probe_logs_in(edge, server):
    at = Configured(
        "mail",
        "email",
        Settings("localhost", "alice@mail.test", server.port, True, "alice@mail.test", Secret("mail.password")),
    )
    assert CHANNEL.probe is not None
    assert is_successful(drive(edge, CHANNEL.probe(at, None, {})))


def test_a_wrong_password_and_a_missing_login_are_denied(edge, server):
    assert isinstance(send(edge, server, to(text("x")), password=Secret("mail.wrong")).failure().cause, Denied)
    assert isinstance(send(edge, server, to(text("x")), username=None, password=None).failure().cause, Denied)


SENDER = """
import resource, sys
from tests.servers.test_mail import *
server, path = eval(sys.argv[1], {"MailServer": mail.MailServer}), Path(sys.argv[2])
edge = SmtpEdge(Http(ca_file=server.ca_file), Secrets({"mail.password": server.password}))
send(edge, server, to(text("warm")))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
send(edge, server, to(file(path, "very large"))).unwrap()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_200_mb_raise_the_memory_by_less_than_20_mb(server, tmp_path):
    path = tmp_path / "large.bin"
    with path.open("wb") as sparse:
        sparse.truncate(200_000_000)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SENDER, repr(server), str(path)]
    sent = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert sent.returncode == 0, sent.stderr
    assert int(sent.stdout) < 20_000
