"""Mail: what is written is what a parser of other authors reads, and every reply means one thing."""

import email
import email.policy
import json
import pickle
import re
from dataclasses import replace
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Failure, Success

from messaging_core.channels.channel import Configured, Fault
from messaging_core.channels.email import CHANNEL, Settings, security
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidArguments,
    InvalidRecipient,
    RateLimited,
    Rejected,
    Unavailable,
)
from messaging_core.flow import Done, Exchange, Part, Receipt, Undelivered, drive
from messaging_core.markup.dialect import Rendered
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret
from messaging_core.wire.http import FileRef
from messaging_core.wire.mail import (
    Attachment,
    Mail,
    MailReply,
    MailRequest,
    Said,
    in_base64,
    mailbox,
    octets,
    stuffed,
    unstructured,
    written,
)

IDS = Ids("1764500000000abcd1234", 1764500000.25)
OWN = Settings("smtp.mail.test", "Bot <bot@mail.test>", username="bot@mail.test", password=Secret("mail.password"))


def configured(**changes: object) -> Configured[Settings]:
    own = {name: getattr(OWN, name) for name in OWN.__slots__} | changes
    return Configured("mail", "email", Settings(**own))


AT = configured()


def text_of(text: str, formatted: str | None = None) -> TextPart:
    return TextPart(Rendered(text, text, formatted))


def outgoing(*parts: TextPart | MediaPart, to: str = "ops@example.org", **more: object) -> Outgoing:
    return Outgoing(CHANNEL.recipient(to).unwrap(), parts or (text_of("All is well."),), **more)  # type: ignore[arg-type]


def first(out: Outgoing, at: Configured[Settings] = AT) -> Exchange:
    step = CHANNEL.describe(at, out, IDS, {}).unwrap()
    assert isinstance(step, Exchange)
    return step


def mail_of(out: Outgoing, at: Configured[Settings] = AT) -> Mail:
    mail = first(out, at).request.mail
    assert isinstance(mail, Mail)
    return mail


def raw(mail: Mail) -> bytes:
    """The octets with every file's place empty."""
    return b"".join(piece if isinstance(piece, bytes) else b"" for piece in written(mail))


def parsed(mail: Mail) -> EmailMessage:
    message = email.message_from_bytes(raw(mail), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    assert not message.defects
    return message


# --- The description --------------------------------------------------------------------------------------------------


def test_a_text_is_one_mail_described_whole():
    expected = MailRequest(
        "smtp.mail.test",
        465,
        "tls",
        "bot@mail.test",
        ("ops@example.org",),
        Mail(
            (
                ("Date", "Sun, 30 Nov 2025 10:53:20 +0000"),
                ("From", "Bot <bot@mail.test>"),
                ("To", "ops@example.org"),
                ("Subject", "All is well."),
                ("Message-ID", "<1764500000000abcd1234.1@mail.test>"),
                ("Auto-Submitted", "auto-generated"),
            ),
            "All is well.",
            "<p>All is well.</p>",
            (),
            f"=_{IDS.boundary}",
        ),
        "bot@mail.test",
        Secret("mail.password"),
    )
    assert first(outgoing(text_of("All is well.", "<p>All is well.</p>"))).request == expected


def test_equal_inputs_give_equal_requests_without_a_password_in_any_form():
    exchange = first(outgoing())
    assert exchange == first(outgoing()) == pickle.loads(pickle.dumps(exchange))
    assert written(exchange.request.mail) == written(first(outgoing()).request.mail)


def test_a_request_shows_what_would_be_sent():
    assert first(outgoing(media(caption="Now"))).request.shown() == {
        "method": "MAIL",
        "url": "smtp://smtp.mail.test:465",
        "headers": dict(mail_of(outgoing(media(caption="Now"))).headers),
        "body": {
            "from": "bot@mail.test",
            "to": ["ops@example.org"],
            "text": "Now",
            "attachments": [{"file": "chart.png", "content_type": "image/png"}],
        },
    }


def test_the_request_is_never_said_to_be_repeatable():
    assert first(outgoing()).request.repeatable is False


@pytest.mark.parametrize(
    ("port", "tls", "expected"),
    [(465, True, "tls"), (587, True, "starttls"), (25, True, "starttls"), (2525, True, "either"), (587, False, "none")],
)
def test_the_port_says_how_the_connection_is_encrypted(port, tls, expected):
    assert security(configured(smtp_port=port, smtp_tls=tls).own) == expected


def test_a_rehearsal_goes_through_every_part():
    parts = (text_of("one"), media(), text_of("two"))
    done = drive(lambda exchange: Success(CHANNEL.rehearse(exchange.request)), first(outgoing(*parts))).unwrap()
    assert [(receipt.part, receipt.id) for receipt in done.delivered] == [
        (Part(index, 3), f"<1764500000000abcd1234.{index}@mail.test>") for index in (1, 2, 3)
    ]


def test_a_probe_hands_nothing_over():
    step = CHANNEL.probe(AT, None, {})  # type: ignore[misc]
    assert (step.request.mail, step.request.recipients, step.part) == (None, (), None)  # type: ignore[union-attr]
    assert drive(lambda exchange: Success(CHANNEL.rehearse(exchange.request)), step) == Success(Done())


# --- What a reader gets -----------------------------------------------------------------------------------------------


def test_plain_and_html_are_alternatives_the_better_last():
    message = parsed(mail_of(outgoing(text_of("grüße\n.dot", "<p>grüße</p>"))))
    assert message.get_content_type() == "multipart/alternative"
    plain, html = message.iter_parts()
    assert (plain.get_content_type(), plain.get_content()) == ("text/plain", "grüße\r\n.dot\r\n")
    assert (html.get_content_type(), html.get_content()) == ("text/html", "<p>grüße</p>\r\n")


def test_text_that_is_to_be_shown_as_it_stands_has_no_html():
    message = parsed(mail_of(outgoing(TextPart(Rendered("a *b*", "a *b*", "<p>a</p>"), markup=False))))
    assert (message.get_content_type(), message.get_content()) == ("text/plain", "a *b*\r\n")


def media(name: str = "chart.png", mime: str = "image/png", caption: str | None = None, data: bytes | None = None):
    facts = FileFacts(name, f"/tmp/{name}", name, 100)
    shown = None if caption is None else Rendered(caption, caption)
    return MediaPart(facts, Kind.IMAGE, mime, shown, data=data)


def test_a_file_is_an_attachment_and_its_caption_the_body():
    mail = mail_of(outgoing(media(caption="Now")))
    assert mail.attachments == (Attachment("chart.png", "image/png", FileRef(media().facts)),)
    body, attached = parsed(mail).iter_parts()
    assert body.get_content() == "Now\r\n"
    assert (attached.get_content_type(), attached.get_filename()) == ("image/png", "chart.png")
    assert attached.get_content_disposition() == "attachment"


def test_bytes_made_here_arrive_as_they_are():
    text = "ä\n" * 1000
    (attached,) = parsed(mail_of(outgoing(media("message.md", "text/markdown", data=text.encode())))).iter_parts()
    assert attached.get_content() == text


@pytest.mark.parametrize(
    ("mime", "head", "charset"),
    [
        ("text/plain", "Größe".encode(), "utf-8"),
        ("text/csv", b"a,b", "utf-8"),
        ("text/plain", "Größe".encode("utf-16"), "utf-16"),
        ("application/json", b"{}", None),
    ],
)
def test_a_text_that_is_attached_says_its_charset_since_without_one_it_would_be_ascii(
    mime: str, head: bytes, charset: str | None
):
    part = media("a.txt", mime)
    part = replace(part, facts=replace(part.facts, head=head))
    (attached,) = parsed(mail_of(outgoing(part))).iter_parts()
    assert (attached.get_content_type(), attached.get_param("charset")) == (mime, charset)


def test_a_mail_that_is_attached_is_not_called_one_since_it_is_in_base64():
    (attached,) = parsed(mail_of(outgoing(media("a.eml", "message/rfc822")))).iter_parts()
    assert attached.get_content_type() == "application/octet-stream"


NAMES = [
    "chart.png",
    "Größe (1).png",
    'a"b\\c.png',
    "a;b=c.png",
    "x" * 200 + ".bin",
    "日本語" * 30 + ".pdf",
    "=?x?.png",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_s_name_is_read_as_it_was_written(name):
    (attached,) = parsed(mail_of(outgoing(media(name)))).iter_parts()
    assert attached.get_filename() == name


# --- Subject and thread -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "out", "expected"),
    [
        ({}, outgoing(text_of("\n  first line \nsecond")), "first line"),
        ({}, outgoing(text_of("y" * 100)), "y" * 78),
        ({}, outgoing(text_of("y" * 76 + "e\u0301\u0301z")), "y" * 76),
        ({}, outgoing(media()), "chart.png"),
        ({}, outgoing(media(caption="Now\nthis")), "Now"),
        ({"default_subject": "Build"}, outgoing(), "Build"),
        ({"default_subject": "Build"}, outgoing(subject="Plan", reply_to="<a@b>"), "Re: Plan"),
        ({}, outgoing(subject="RE: Plan", reply_to="<a@b>"), "RE: Plan"),
        ({}, outgoing(subject="Plan"), "Plan"),
    ],
)
def test_the_subject(changes, out, expected):
    assert parsed(mail_of(out, configured(**changes)))["Subject"] == expected


LONG = f"<{'x' * 200}@mail.example>"


@pytest.mark.parametrize(
    ("reply_to", "parent", "references"),
    [
        ("<a@b.example>", "<a@b.example>", "<a@b.example>"),
        ("a@b.example", "<a@b.example>", "<a@b.example>"),
        ("<20251130.17>", "<20251130.17>", "<20251130.17>"),
        (LONG, LONG, LONG),
        (f"<a@b> {LONG} <c@d>", "<c@d>", f"<a@b> {LONG} <c@d>"),
    ],
)
def test_an_answer_names_what_it_answers_whatever_its_length(reply_to, parent, references):
    headers = raw(mail_of(outgoing(reply_to=reply_to))).split(b"\r\n\r\n")[0].replace(b"\r\n ", b" ").decode()
    assert f"\r\nIn-Reply-To: {parent}\r\n" in headers
    assert f"\r\nReferences: {references}\r\n" in headers


@pytest.mark.parametrize("reply_to", ["a b", "<a@b>\r\nBcc: x@y", "<a b@c>", "<a@b> and more", "<ä@b>", "<>"])
def test_what_is_no_message_id_is_refused(reply_to):
    assert isinstance(CHANNEL.describe(AT, outgoing(reply_to=reply_to), IDS, {}).failure(), InvalidArguments)


# --- Nothing gets into a header ---------------------------------------------------------------------------------------

ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)
NASTY = st.sampled_from(
    ["a\r\nBcc: x@y.example", "a\n\nbody", "=?utf-8?q?=0ABcc:_x?=", "a\x00b\x85c\u2028d", "é" * 80, "w" * 2000]
)
HEADERS = ["Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From"]
HEADERS += ["MIME-Version", "Message-ID", "To", "Subject"]


@settings(deadline=None, max_examples=150)
@given(ANYTHING | NASTY, ANYTHING | NASTY)
def test_no_text_adds_a_header_and_all_of_it_is_read_again(subject, text):
    mail = mail_of(outgoing(text_of(text)), configured(default_subject=subject))
    octets_ = raw(mail)
    assert re.search(rb"\r(?!\n)|(?<!\r)\n", octets_) is None
    assert max(map(len, octets_.split(b"\r\n"))) <= 998
    assert octets_.isascii()
    message = email.message_from_bytes(octets_, policy=email.policy.default)
    assert sorted(message.keys()) == sorted(HEADERS)
    content = message.get_payload(decode=True).decode().replace("\r\n", "\n")
    assert content.rstrip("\n") == re.sub("\r\n?|\u2028|\u2029", "\n", text).rstrip("\n")
    if subject.strip() and subject.isprintable() and "=?" not in subject and "  " not in subject:
        assert str(message["Subject"]) == subject.strip()


@pytest.mark.parametrize("text", ["Grüße aus 東京 " * 12, "=?utf-8?q?=0ABcc:_x?=", "w" * 300])
def test_encoded_words_are_short_and_read_back(text):
    value = unstructured(text)
    assert max(map(len, value.split(" "))) <= 75
    mail = Mail((("Subject", value),), "x")
    assert parsed(mail)["Subject"] == text.strip()


def test_a_header_with_a_line_end_cannot_be_made():
    with pytest.raises(ValueError, match="control"):
        Mail((("Subject", "a\r\nBcc: b"),), "x")


@pytest.mark.parametrize("name", ["Bot", "Bot, Inc.", 'The "Bot"', "Größe", "=?x?="])
def test_a_name_is_read_as_it_was_written(name):
    (address,) = parsed(Mail((("From", mailbox(name, "bot@mail.test")),), "x"))["From"].addresses
    assert (address.display_name, address.addr_spec) == (name, "bot@mail.test")


# --- Octets -----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=200), max_size=6))
def test_blocks_of_any_size_are_the_same_base64(blocks):
    whole = b"".join(blocks)
    lines = b"".join(in_base64(iter(blocks)))
    assert lines == b"".join(in_base64([whole]))
    attached = email.message_from_bytes(b"Content-Transfer-Encoding: base64\r\n\r\n" + lines)
    assert attached.get_payload(decode=True) == whole
    reference = FileRef(FileFacts("a", "/a", "a", len(whole)))
    assert octets((b"ab", reference)) == 2 + len(lines)


def test_dots_at_the_start_of_a_line_are_doubled():
    assert stuffed(b".\r\n.a\r\nb.\r\n..\r\n") == b"..\r\n..a\r\nb.\r\n...\r\n"


# --- Recipients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ops@example.org", "ops@example.org"),
        ("Ops@EXAMPLE.org", "Ops@example.org"),
        ("Ops Team <ops@example.org>", "ops@example.org"),
        ('"Doe. Bob" <bob@example.org>', "bob@example.org"),
        ("info@bücher.example", "info@xn--bcher-kva.example"),
        ("straße@faß.example", "straße@xn--fa-hia.example"),
        ("root@localhost", "root@localhost"),
        ("a+b=c@sub.example.co", "a+b=c@sub.example.co"),
        ('"a b"@example.org', '"a b"@example.org'),
        ("bot@[127.0.0.1]", "bot@[127.0.0.1]"),
    ],
)
def test_addresses(text, expected):
    assert CHANNEL.recipient(text) == Success(Recipient(expected, "address"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ops",
        "@example.org",
        "ops@",
        "a@b@c",
        ".a@example.org",
        "a..b@example.org",
        "a b@example.org",
        "a@-x.example",
        "a@x..example",
        "a@example.org\r\nRCPT TO:<x@y.z>",
        "a@example.org\x00",
        "x" * 65 + "@example.org",
        "a@" + "x" * 64 + ".org",
        "<a@example.org",
        "a@example.org>",
        "a\u202e@example.org",
        "Evil\nName <a@example.org>",
        "a@example.org,",
        "a@exa mple.org",
    ],
)
def test_what_is_no_address_is_refused(text):
    assert isinstance(CHANNEL.recipient(text).failure(), InvalidRecipient)


def test_a_list_of_recipients_comes_from_the_settings_alone():
    at = configured(to=("a@x.example", "B <b@x.example>"))
    default = CHANNEL.default_recipient(at.own)
    assert default == "a@x.example, b@x.example"
    mail = first(outgoing(to=default), at).request
    assert mail.recipients == ("a@x.example", "b@x.example")
    assert dict(mail.mail.headers)["To"] == "a@x.example, b@x.example"
    other = CHANNEL.describe(at, outgoing(to="a@x.example, c@x.example"), IDS, {})
    assert isinstance(other.failure(), InvalidRecipient)


@pytest.mark.parametrize(
    ("one", "other"),
    [("A@Example.org", "a@example.ORG"), ("x@bücher.example", "X@xn--bcher-kva.example"), ("mailto:a@b", "a@b")],
)
def test_spellings_of_one_address_are_equal(one, other):
    assert CHANNEL.same(one) == CHANNEL.same(other)


# --- Replies ----------------------------------------------------------------------------------------------------------

OK = Said(250, "2.0.0 Ok: queued as 1")
NO = Said(550, "5.1.1 User unknown")


def outcome(reply: MailReply, *to: str):
    at = configured(to=to)
    return first(outgoing(to=", ".join(to)), at).then(reply)


def test_accepted_is_delivered_with_the_message_id_that_we_gave():
    receipt = Receipt(Part(1, 1), "<1764500000000abcd1234.1@mail.test>", "a@x.example")
    assert outcome(MailReply("accepted", OK), "a@x.example") == Success(Done((receipt,)))


def test_some_refused_recipients_are_told_one_by_one():
    reply = MailReply("accepted", OK, (("b@x.example", NO), ("c@x.example", Said(451, "4.3.0 Later"))))
    done = outcome(reply, "a@x.example", "b@x.example", "c@x.example").unwrap()
    assert done.delivered[0].recipient == "a@x.example"
    assert done.undelivered == (
        Undelivered("b@x.example", InvalidRecipient("b@x.example", "", "5.1.1 User unknown", 550)),
        Undelivered("c@x.example", Unavailable(451, "", "4.3.0", "Later")),
    )


def test_where_all_are_refused_one_that_may_be_taken_later_counts():
    reply = MailReply("recipients", NO, (("a@x.example", NO), ("b@x.example", Said(450, "4.2.0 Greylisted"))))
    assert outcome(reply, "a@x.example", "b@x.example") == Failure(Unavailable(450, "", "4.2.0", "Greylisted"))


KEPT = sorted((Path(__file__).parents[2] / "replies" / "email").glob("*.json"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_real_servers_said_is_what_it_means(path):
    kept = json.loads(path.read_bytes())
    said = Said(kept["code"], kept["text"])
    refused = (("a@x.example", said),) if kept["stage"] == "recipients" else ()
    cause = outcome(MailReply(kept["stage"], said, refused), "a@x.example").failure()
    assert type(cause).__name__ == kept["means"]
    assert cause.status == kept["code"]


@pytest.mark.parametrize(
    ("stage", "code", "text", "expected"),
    [
        ("connect", 554, "5.7.1 You are listed", Denied),
        ("connect", 554, "no service here", Denied),
        ("connect", 421, "4.3.2 try later", Unavailable),
        ("login", 535, "5.7.8 bad credentials", Denied),
        ("login", 454, "4.7.0 Temporary authentication failure", RateLimited),
        ("sender", 530, "5.7.0 Must issue a STARTTLS command first", Denied),
        ("sender", 550, "5.7.60 not allowed to send as this sender", Denied),
        ("sender", 552, "5.3.4 message size exceeds limit", Invalid),
        ("sender", 501, "5.1.7 Bad sender address syntax", Invalid),
        ("sender", 421, "4.7.0 Too many messages", RateLimited),
        ("content", 552, "Too much mail data", Invalid),
        ("content", 554, "5.7.1 This looks like spam", Rejected),
        ("content", 451, "4.3.0 Error while writing", Unavailable),
        ("content", 500, "Line too long", Invalid),
    ],
)
def test_every_refusal_says_what_to_do_next(stage, code, text, expected):
    cause = outcome(MailReply(stage, Said(code, text)), "a@x.example").failure()
    assert type(cause) is expected
    assert cause.status == code
    assert text.split(" ", 1)[1] in str(cause)


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (550, "5.1.1 unknown", InvalidRecipient),
        (550, "no such user", InvalidRecipient),
        (553, "5.1.3 bad address", InvalidRecipient),
        (552, "5.2.2 Mailbox is full", InvalidRecipient),
        (554, "5.7.1 Relay access denied", Denied),
        (550, "5.7.1 Message rejected", Denied),
        (452, "4.5.3 Too many recipients", RateLimited),
        (450, "4.7.1 slow down", RateLimited),
        (450, "4.2.0 Greylisted", Unavailable),
        (503, "5.5.1 need MAIL", Invalid),
    ],
)
def test_every_refusal_of_a_recipient_says_what_to_do_next(code, text, expected):
    said = Said(code, text)
    cause = outcome(MailReply("recipients", said, (("a@x.example", said),)), "a@x.example").failure()
    assert type(cause) is expected


# --- Settings ---------------------------------------------------------------------------------------------------------

GOOD = {"smtp_host": "smtp.mail.test", "from_address": "bot@mail.test"}


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        (GOOD, []),
        (GOOD | {"to": ["a@x.example", "b@x.example"]}, []),
        (GOOD | {"from_address": "bot"}, ["from_address"]),
        (GOOD | {"to": ["a@x.example", "nobody"]}, ["to"]),
        (GOOD | {"password": "FAKE"}, ["username"]),
        (GOOD | {"smtp_tls": False}, []),
        (GOOD | {"smtp_tls": False, "username": "a", "password": "FAKE"}, ["smtp_tls"]),
        (GOOD | {"smtp_tls": False, "username": "a", "password": "FAKE", "smtp_host": "127.0.0.1"}, []),
        (GOOD | {"smtp_tls": False, "username": "a", "password": "FAKE", "smtp_host": "localhost"}, []),
    ],
)
def test_faults_of_the_settings_are_found_when_loading(values, keys):
    faults = list(CHANNEL.check(values))
    assert [fault.key for fault in faults] == keys
    assert all(isinstance(fault, Fault) and "FAKE" not in repr(fault) for fault in faults)


def test_the_date_is_the_message_s_own():
    mail = mail_of(outgoing())
    assert parsed(mail)["Date"].datetime == datetime.fromtimestamp(1764500000, UTC)
