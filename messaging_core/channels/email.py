"""Mail by SMTP submission (https://www.rfc-editor.org/rfc/rfc5321, https://www.rfc-editor.org/rfc/rfc5322)."""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import regex
from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Capabilities, Channel, Configured, Fault, Known, Sort, key
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidArguments,
    InvalidRecipient,
    RateLimited,
    Refusal,
    Rejected,
    SendError,
    Unavailable,
)
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, Step, Undelivered, in_order
from messaging_core.markup.email_html import EMAIL_HTML
from messaging_core.message import Content, Ids, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret
from messaging_core.wire.http import FileRef
from messaging_core.wire.mail import (
    Attachment,
    Mail,
    MailReply,
    MailRequest,
    Said,
    Security,
    Stage,
    mailbox,
    one_line,
    unstructured,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an ``email`` channel."""

    smtp_host: str = key(Sort.TEXT, "Host of the mail server.")
    from_address: str = key(Sort.TEXT, "Who it is from: `bot@example.org` or `Bot <bot@example.org>`.")
    smtp_port: int = key(
        Sort.NUMBER, "Port: 465 is TLS from the start, 587 STARTTLS.", default=465, least=1, most=65535
    )
    smtp_tls: bool = key(Sort.BOOLEAN, "Whether the connection must be encrypted.", default=True)
    username: str | None = key(Sort.TEXT, "Name to log in with.", default=None)
    password: Secret | None = key(Sort.PASSWORD, "Password to log in with.", default=None)
    to: tuple[str, ...] = key(
        Sort.IDS, "Default recipient: an address, or a list that gets one mail together.", default=()
    )
    default_subject: str | None = key(Sort.TEXT, "Subject; not given: the first line of the text.", default=None)


# --- Addresses --------------------------------------------------------------------------------------------------------

_ATOM = r"[^\s\x00-\x20\x7f-\xa0()<>\[\]:;@\\,.\"]+"
LOCAL = re.compile(rf'{_ATOM}(?:\.{_ATOM})*|"(?:[ !#-\[\]-~]|\\[ -~])+"')
DOMAIN = re.compile(
    r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*|\[(?:ipv6:)?[0-9a-f:.]+\]", re.IGNORECASE | re.ASCII
)
NAMED = re.compile(r'(?:"([^"]*)"|([^"<>]*?))\s*<([^<>]*)>')
EXPECTED = "a mail address: name@example.org"


@dataclass(frozen=True, slots=True)
class Address:
    """``name`` for people, empty where there is none; ``spec`` for machines, the domain in ASCII and lower case."""

    name: str
    spec: str


def read_address(text: str) -> Address | None:
    """``local@domain`` or ``Name <local@domain>``; None where it is neither. A domain beyond ASCII becomes its
    A-labels.

    >>> read_address("Bücher <info@BÜCHER.example>")
    Address(name='Bücher', spec='info@xn--bcher-kva.example')
    """
    named = NAMED.fullmatch(text)
    name, spec = (named[1] or named[2] or "", named[3]) if named else ("", text)
    local, at, domain = spec.rpartition("@")
    domain = _in_ascii(domain).lower()
    fits = len(local.encode("utf-8", "replace")) <= 64 and len(domain) <= 255
    if not (at and fits and local.isprintable() and LOCAL.fullmatch(local) and DOMAIN.fullmatch(domain)):
        return None
    return None if name != one_line(name) else Address(name, f"{local}@{domain}")


def _in_ascii(domain: str) -> str:
    """The domain by IDNA 2008 (RFC 5891); empty where it has no such form."""
    if domain.isascii():
        return domain
    import idna  # its tables are large, and needed for few

    try:
        return idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return ""


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    """One address. Several, with commas, are a list, which :func:`describe` takes from the settings alone."""
    found = [read_address(one.strip()) for one in text.split(",")] if "," in text else [read_address(text)]
    specs = [address.spec for address in found if address is not None]
    if len(specs) < len(found):
        return Failure(InvalidRecipient(text, EXPECTED))
    return Success(Recipient(", ".join(specs), "address" if len(specs) == 1 else "list"))


def same(text: str) -> str:
    """Addresses are equal whatever their case, and whether their domain is spelled in ASCII or not."""
    local, at, domain = text.strip().removeprefix("mailto:").rpartition("@")
    return (local + at + (_in_ascii(domain) or domain)).casefold()


# --- Requests ---------------------------------------------------------------------------------------------------------

MESSAGE_ID = re.compile(r"<[!-;=?-~]+>")
"""What stands for one in practice: there are programs whose ids have no ``@``."""

SUBJECT = 78
"""Characters at which a first line that serves as subject is cut."""


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    """One mail for each part. Only the settings can name several recipients: a list in an argument is refused."""
    if outgoing.recipient.kind == "list" and outgoing.recipient.id != _listed(at.own.to):
        return Failure(InvalidRecipient(outgoing.recipient.id, "one address; a list can be set as 'to' of the channel"))
    if outgoing.reply_to is not None and not _ids_in(outgoing.reply_to):
        return Failure(InvalidArguments("message_send", ("reply_to: expected a Message-ID: <id@example.org>",)))
    return Success(in_order(tuple(place(at, outgoing, ids, part, content) for part, content in outgoing.numbered)))


def place(at: Configured[Settings], outgoing: Outgoing, ids: Ids, part: Part, content: Content) -> Exchange:
    """One mail. Its Message-ID comes from the message's id, so that a repeat is the same mail."""
    sender = read_address(at.own.from_address)
    assert sender is not None, "checked when loading"
    recipients = tuple(outgoing.recipient.id.split(", "))
    id = f"<{ids.part(part.index)}@{sender.spec.rpartition('@')[2].strip('[]')}>"
    mail = Mail(
        (
            ("Date", format_datetime(datetime.fromtimestamp(int(ids.now), UTC))),
            ("From", mailbox(sender.name, sender.spec)),
            ("To", ", ".join(recipients)),
            ("Subject", unstructured(subject_of(at.own, outgoing, content))),
            ("Message-ID", id),
            *_threading(outgoing.reply_to),
            ("Auto-Submitted", "auto-generated"),  # keeps out-of-office replies away (RFC 3834, 5)
        ),
        *_body(content),
        _attachments(content),
        f"=_{ids.boundary}",  # which is in no quoted-printable and no base64 (RFC 2045, 6.7)
    )
    request = _to_server(at.own, sender.spec, recipients, mail)
    scope = Scope(at.name, at.own.password.name if at.own.password else "", outgoing.recipient.id)
    return Exchange(request, Placed(part, id, recipients, content.notes), scope, part)


def _to_server(own: Settings, sender: str, recipients: tuple[str, ...] = (), mail: Mail | None = None) -> MailRequest:
    username = own.username if own.password else None
    return MailRequest(own.smtp_host, own.smtp_port, security(own), sender, recipients, mail, username, own.password)


def security(own: Settings) -> Security:
    """By custom (RFC 8314): port 465 begins with TLS, 25 and 587 turn to it; on others the server shows which."""
    if not own.smtp_tls:
        return "none"
    usual: dict[int, Security] = {465: "tls", 25: "starttls", 587: "starttls"}
    return usual.get(own.smtp_port, "either")


def subject_of(own: Settings, outgoing: Outgoing, content: Content) -> str:
    """``Re:`` and the subject of the answered mail; else the configured one; else the first line of the text."""
    if outgoing.subject:
        answered = one_line(outgoing.subject)
        is_answer = outgoing.reply_to is None or re.match(r"re\s*:", answered, re.IGNORECASE)
        return answered if is_answer else f"Re: {answered}"
    if own.default_subject:
        return own.default_subject
    text = content.caption if isinstance(content, MediaPart) else content.text
    lines = text.visible.splitlines() if text else []
    first = next(filter(None, map(one_line, lines)), "")
    if not first and isinstance(content, MediaPart):
        first = one_line(content.facts.name)
    return _cut(first)


def _cut(line: str) -> str:
    """The line's beginning, without a character cut in two."""
    if len(line) <= SUBJECT:
        return line
    ends = [grapheme.end() for grapheme in regex.finditer(r"\X", line[: SUBJECT + 1]) if grapheme.end() <= SUBJECT]
    return line[: ends[-1] if ends else SUBJECT].rstrip()


def _listed(to: Iterable[str]) -> str:
    addresses = [read_address(one.strip()) for entry in to for one in entry.split(",")]
    return ", ".join(address.spec for address in addresses if address)


def _ids_in(text: str) -> list[str]:
    """The Message-IDs in ``text``; one without its brackets gets them. None at all where there is anything else."""
    ids = text.split()
    if len(ids) == 1 and not ids[0].startswith("<"):
        ids = [f"<{ids[0]}>"]
    return ids if all(MESSAGE_ID.fullmatch(id) and len(id) < 900 for id in ids) else []


def _threading(reply_to: str | None) -> tuple[tuple[str, str], ...]:
    """Ids from the first of the thread to the one answered (RFC 5322, 3.6.4); mostly there is but that one."""
    ids = _ids_in(reply_to or "")
    return (("In-Reply-To", ids[-1]), ("References", " ".join(ids))) if ids else ()


def _body(content: Content) -> tuple[str, str | None]:
    text = content.caption if isinstance(content, MediaPart) else content.text
    if text is None:
        return "", None
    return text.text, text.formatted if content.markup else None


def _attachments(content: Content) -> tuple[Attachment, ...]:
    if isinstance(content, TextPart):
        return ()
    data = FileRef(content.facts) if content.data is None else content.data
    return (Attachment(content.facts.name, content.mime, data),)


# --- Replies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """The server took the mail, for all or for some of its recipients. It may still come back (RFC 5321, 6.1)."""

    part: Part
    id: str
    recipients: tuple[str, ...]
    notes: tuple[str, ...]

    def __call__(self, reply: MailReply, /) -> Result[Step, SendError]:
        if reply.stage != "accepted":
            return Failure(failure_of(reply))
        refused = dict(reply.refused)
        taken = ", ".join(one for one in self.recipients if one not in refused)
        undelivered = tuple(Undelivered(one, _failure("recipients", said, one)) for one, said in reply.refused)
        return Success(Done((Receipt(self.part, self.id, taken, self.notes),), undelivered))


def failure_of(reply: MailReply) -> SendError:
    """What a refusal means. Of several refused recipients one that may be taken later counts first."""
    if reply.stage != "recipients" or not reply.refused:
        return _failure(reply.stage, reply.said)
    causes = [_failure("recipients", said, one) for one, said in reply.refused]
    return next((cause for cause in causes if isinstance(cause, RateLimited | Unavailable)), causes[0])


CODES: dict[str, type[SendError]] = {
    # https://www.rfc-editor.org/rfc/rfc3463, by stage and the enhanced code without its class; then by stage and code
    **dict.fromkeys(
        ("recipients 1.1", "recipients 1.2", "recipients 1.3", "recipients 1.6", "recipients 1.10"), InvalidRecipient
    ),
    **dict.fromkeys(("recipients 2.0", "recipients 2.1", "recipients 2.2", "recipients 4.4"), InvalidRecipient),
    **dict.fromkeys(("sender 3.4", "content 3.4", "content 2.3", "sender 2.3"), Invalid),
    **dict.fromkeys(
        ("connect 554", "sender 530", "sender 535", "sender 553", "recipients 530", "recipients 535"), Denied
    ),
    **dict.fromkeys(("recipients 550", "recipients 551", "recipients 552", "recipients 553"), InvalidRecipient),
    **dict.fromkeys(("sender 552", "content 552", "sender 555", "recipients 555"), Invalid),
}


def _failure(stage: Stage, said: Said, recipient: str = "") -> SendError:
    """4xx passes, 5xx stays (RFC 5321, 4.2.1); policy (x.7.x) asks for a right, or for less haste."""
    enhanced = re.match(r"[245]\.(\d{1,3})\.(\d{1,3})\b", said.text)
    code, text = (enhanced[0], said.text[enhanced.end() :].strip()) if enhanced else ("", said.text)
    topic = f"{enhanced[1]}.{enhanced[2]}" if enhanced else ""
    if said.code < 500:
        hasty = topic.startswith("7.") or topic in ("4.5", "5.3")
        return RateLimited(said.code, "", code, text) if hasty else Unavailable(said.code, "", code, text)
    on_policy = stage == "login" or "relay" in text.lower() or (topic.startswith("7.") and stage != "content")
    policy = Denied if on_policy else None
    other = Invalid if said.code <= 504 else Rejected
    kind = CODES.get(f"{stage} {topic}") or policy or CODES.get(f"{stage} {said.code}") or other
    if kind is InvalidRecipient:
        return InvalidRecipient(recipient, "", f"{code} {text}".strip(), said.code)
    assert issubclass(kind, Invalid | Denied | Rejected), kind
    return kind(said.code, "", code, text)


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Whether the server is there and lets us in. Of a recipient it is not asked: servers take that for spying."""
    sender = read_address(at.own.from_address)
    assert sender is not None, "checked when loading"
    return Exchange(_to_server(at.own, sender.spec), there, Scope(at.name))


def there(reply: MailReply, /) -> Result[Step, SendError]:
    return Success(Done()) if reply.stage == "accepted" else Failure(failure_of(reply))


def rehearse(request: Any) -> MailReply:
    return MailReply("accepted", Said(250, "2.0.0 Ok"))


def check(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Addresses that are none, and a password that would travel readable by anyone."""
    if read_address(str(values.get("from_address", ""))) is None:
        yield Fault("from_address", "not a mail address", "bot@example.org, or Bot <bot@example.org>")
    to = values.get("to") or ()
    for entry in (to,) if isinstance(to, str) else to:
        if any(read_address(one.strip()) is None for one in str(entry).split(",")):
            yield Fault("to", f"{entry!r} is not a mail address", "name@example.org")
    if values.get("password") and not values.get("username"):
        yield Fault("username", "missing, though there is a password", "most servers want the whole address")
    if values.get("smtp_tls") is False and values.get("password") and not _is_here(str(values.get("smtp_host", ""))):
        yield Fault(
            "smtp_tls", "false would send the password unencrypted", "true, or no password, or a host on this machine"
        )


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


CHANNEL = Channel(
    platform="email",
    settings=Settings,
    capabilities=Capabilities(media=True, reply=True),
    dialect=EMAIL_HTML,
    describe=describe,
    recipient=recipient,
    default_recipient=lambda own: _listed(own.to) or None,
    default_key="to",
    probe=probe,
    same=same,
    check=check,
    ids_per_chat=False,
    threads_by_reply=True,
    rehearse=rehearse,
)
