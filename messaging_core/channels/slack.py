"""Slack by a bot token: messages and the three-step upload of the Web API (https://docs.slack.dev/apis/web-api)."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlencode

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import By, Capabilities, Channel, Configured, Known, Limits, Pace, Sort, key
from messaging_core.channels.failures import failure
from messaging_core.channels.places import upload_place
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidArguments,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Refusal,
    SendError,
    Unavailable,
)
from messaging_core.flow import Done, Exchange, Learned, Part, Receipt, Scope, Step, Then, after, in_order
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.slack_mrkdwn import SLACK_MRKDWN, escape
from messaging_core.message import Content, Ids, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret
from messaging_core.wire.http import (
    FileRef,
    HttpReply,
    HttpRequest,
    at,
    bearer,
    read_json,
    segment,
    text_at,
    to_json,
    wait_of,
)

# --- Settings and limits ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``slack`` channel."""

    bot_token: Secret = key(Sort.SECRET, "Bot token of the app, `xoxb-...`.")
    channel_id: str | None = key(
        Sort.ID, "Default recipient: id of a channel, DM or user, or `#name`; `*` is none.", default=None
    )
    api_base: str = key(Sort.URL, "Prefix of the methods, for GovSlack or a proxy.", default="https://slack.com/api")


TEXT = (Length(3900, Unit.CODE_POINTS, Of.RAW), Length(4000, Unit.BYTES, Of.RAW))
"""Of the escaped text. Slack advises 4,000 "characters" without saying of which kind, and splits long code blocks near
there by itself: https://docs.slack.dev/reference/methods/chat.postMessage#truncating"""

FILE = 1_000_000_000
"""Bytes: https://slack.com/help/articles/201330736"""

DOMAINS = ("slack.com", "slack-gov.com")

MOST_PAGES = 20
PAGE = 999
"""How far a name is looked for: 20 pages of the most that one may hold.
https://docs.slack.dev/reference/methods/conversations.list"""

NAME_HOLDS = 3600.0
"""Seconds that the id behind a ``#name`` is relied on: a renamed channel leaves its name to another."""


# --- Recipients -------------------------------------------------------------------------------------------------------

FORM = re.compile(
    r"(?:(?P<channel>[CGD][A-Z0-9]+)|(?P<user>[UW][A-Z0-9]+)|(?P<name>#[\w-]{1,80}))(?:/(?P<thread>(?a:\d+\.\d+)))?"
)
TIMESTAMP = re.compile(r"(?a:\d+\.\d+)")


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    """``C...``, ``G...``, ``D...``: a channel or DM; ``U...``, ``W...``: a user; ``#name``; and ``/<thread_ts>``."""
    found = FORM.fullmatch(text)
    if found is None:
        return Failure(
            InvalidRecipient(text, "an id of a channel (C...) or user (U...), or #name; /<thread_ts> for a thread")
        )
    kind = next(kind for kind in ("channel", "user", "name") if found[kind])
    id = found[kind].lower() if kind == "name" else found[kind]
    return Success(Recipient(id, kind, found["thread"], f"{id}/{found['thread']}" if found["thread"] else ""))


def same(text: str) -> str:
    """An id as it is written, and a name whatever its case: ``#ops`` a channel's, ``@ann`` or ``ann`` a person's.

    So no name is equal to an id, since anybody may call a channel or themselves like one.
    """
    found = FORM.fullmatch(text)
    return text if found is not None and not found["name"] else text.casefold().removeprefix("@")


def default_recipient(own: Settings) -> str | None:
    return None if own.channel_id == "*" else own.channel_id


# --- Requests ---------------------------------------------------------------------------------------------------------


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    """Texts go to any form of recipient; the file methods take a channel's id only, which may have to be looked up."""
    if outgoing.reply_to is not None and not TIMESTAMP.fullmatch(outgoing.reply_to):
        return Failure(InvalidArguments("message_send", ("reply_to: a message's ts, as in 1712345678.123456",)))
    to = outgoing.recipient
    if to.kind == "channel":
        return Success(parts(at, outgoing, to.id))
    lesson = lesson_on(at, to, ids.now)
    found = known.get(lesson.key)
    if not any(isinstance(content, MediaPart) for content in outgoing.parts):
        return Success(parts(at, outgoing, to.id, None if found else lesson))
    if found:
        return Success(parts(at, outgoing, found))
    return Success(after(look_up(at, to, lesson), Found(at, outgoing)))


def lesson_on(at: Configured[Settings], to: Recipient, now: float) -> Learned:
    """What there is to learn of a user or name, still without its value. A user's DM stays, a name may move on."""
    if to.kind == "user":
        return Learned(f"{at.name}.dm.{to.id}", "")
    return Learned(f"{at.name}.channel.{to.id}", "", now + NAME_HOLDS)


@dataclass(frozen=True, slots=True)
class Found:
    """The id of the channel is the last thing learned: place the parts there."""

    at: Configured[Settings]
    outgoing: Outgoing

    def __call__(self, done: Done, /) -> Step:
        lesson = done.learned[-1]
        assert isinstance(lesson, Learned)
        return parts(self.at, self.outgoing, lesson.value)


def parts(at: Configured[Settings], outgoing: Outgoing, channel: str, learn: Learned | None = None) -> Step:
    return in_order(tuple(place(at, outgoing, channel, part, content, learn) for part, content in outgoing.numbered))


def place(
    at: Configured[Settings], outgoing: Outgoing, channel: str, part: Part, content: Content, learn: Learned | None
) -> Exchange:
    """One part. Slack replies by thread alone: each goes into the recipient's, else that of the message replied to."""
    thread, reply, notes = outgoing.recipient.thread, outgoing.reply_to, content.notes
    if thread and reply and thread != reply and part.index == 1:
        notes = (*notes, "in the thread, not under the message: Slack has no replies inside a thread")
    droppable = bool(reply and not thread)
    target = Target(at, channel, str(outgoing.recipient), thread or reply, part, notes, droppable, learn)
    return say(target, content) if isinstance(content, TextPart) else begin_upload(target, content)


@dataclass(frozen=True, slots=True)
class Target:
    """Where one part goes. ``shown``: the recipient as named. ``droppable``: only a reply's thread, may be gone."""

    at: Configured[Settings]
    channel: str
    shown: str
    thread: str | None
    part: Part
    notes: tuple[str, ...] = ()
    droppable: bool = False
    learn: Learned | None = None

    @property
    def threadless(self) -> "Target":
        notes = (*self.notes, "not as a reply: the message replied to cannot be replied to")
        return replace(self, thread=None, notes=notes, droppable=False)


def show(target: Target, method: str, value: dict[str, Any], then: Then) -> Exchange:
    """The one request of a part that people see."""
    at = target.at
    return Exchange(_post(at, method, value), then, _scope(at, method, target.channel), target.part)


def _post(at: Configured[Settings], method: str, value: dict[str, Any], repeatable: bool = False) -> HttpRequest:
    """A method with JSON; without the charset Slack warns (https://docs.slack.dev/apis/web-api#post-bodies)."""
    headers = (("Content-Type", "application/json; charset=utf-8"), bearer(at.own.bot_token))
    return HttpRequest("POST", f"{at.own.api_base}/{method}", headers, to_json(value), repeatable=repeatable)


def _get(at: Configured[Settings], method: str, *query: tuple[str, str]) -> HttpRequest:
    return HttpRequest("GET", f"{at.own.api_base}/{method}", (bearer(at.own.bot_token),), query=query, repeatable=True)


def _scope(at: Configured[Settings], method: str, chat: str = "") -> Scope:
    return Scope(at.name, at.own.bot_token.name, chat, method)


def say(target: Target, content: TextPart) -> Exchange:
    """A message; ``parse`` and ``link_names`` keep bare names from ringing.

    https://docs.slack.dev/reference/methods/chat.postMessage
    """
    body = {
        "channel": target.channel,
        "text": content.text.text if content.markup else escape(content.text.text, False, False),
        "mrkdwn": content.markup,
        "parse": "none",
        "link_names": False,
        **({"thread_ts": target.thread} if target.thread else {}),
    }
    then = Placed(target, say(target.threadless, content) if target.droppable else None)
    return show(target, "chat.postMessage", body, then)


def begin_upload(target: Target, content: MediaPart) -> Exchange:
    """Ask for a place (https://docs.slack.dev/reference/methods/files.getUploadURLExternal); ``length`` in bytes."""
    size = content.facts.size if content.data is None else len(content.data)
    form = urlencode({"filename": content.facts.name, "length": str(size)}).encode()
    headers = (("Content-Type", "application/x-www-form-urlencoded"), bearer(target.at.own.bot_token))
    url = f"{target.at.own.api_base}/files.getUploadURLExternal"
    request = HttpRequest("POST", url, headers, form, repeatable=True)
    return Exchange(request, PlaceNamed(target, content), _scope(target.at, "files.getUploadURLExternal"))


def store(target: Target, content: MediaPart, url: str, file: str) -> Exchange:
    """The bytes as they are, to the place that was named: no token goes with them."""
    body = FileRef(content.facts) if content.data is None else content.data
    request = HttpRequest("POST", url, (("Content-Type", "application/octet-stream"),), body, repeatable=True)
    return Exchange(request, Stored(target, content, file), _scope(target.at, "upload"))


def share(target: Target, content: MediaPart, file: str) -> Exchange:
    """Show the file in the channel (https://docs.slack.dev/reference/methods/files.completeUploadExternal)."""
    body = {
        "files": [{"id": file, "title": content.facts.name}],
        "channel_id": target.channel,
        **({"initial_comment": content.caption.text} if content.caption else {}),
        **({"thread_ts": target.thread} if target.thread else {}),
    }
    then = Shared(target, file, share(target.threadless, content, file) if target.droppable else None)
    return show(target, "files.completeUploadExternal", body, then)


# --- What replies mean ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """The message is there. Its id is its ``ts``, a text: as a number it would lose digits.

    ``unthreaded``: the step that is taken instead where the message replied to is gone.
    """

    target: Target
    unthreaded: Exchange | None = None

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if self.unthreaded is not None and _error(reply) in THREAD_GONE:
            return Success(self.unthreaded)
        return read(reply, self.target.shown).map(self._done)

    def _done(self, body: Any) -> Step:
        cut = ("cut by Slack",) if "message_truncated" in _warnings(body) else ()
        receipt = Receipt(self.target.part, text_at(body, "ts") or None, self.target.shown, (*self.target.notes, *cut))
        channel, learn = text_at(body, "channel"), self.target.learn
        learned = (replace(learn, value=channel),) if learn is not None and channel else ()
        return Done((receipt,), learned=learned)


@dataclass(frozen=True, slots=True)
class PlaceNamed:
    """A place for the bytes, and the file's id."""

    target: Target
    content: MediaPart

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.target.shown).bind(self._store)

    def _store(self, body: Any) -> Result[Step, SendError]:
        place = upload_place(text_at(body, "upload_url"), self.target.at.own.api_base, DOMAINS)
        return place.map(lambda url: store(self.target, self.content, url, text_at(body, "file_id")))


@dataclass(frozen=True, slots=True)
class Stored:
    """The bytes are there; nobody sees them yet. The place answers in plain text, and with 200 alone for a success."""

    target: Target
    content: MediaPart
    file: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if reply.status != 200:
            return Failure(failure(reply))
        return Success(share(self.target, self.content, self.file))


@dataclass(frozen=True, slots=True)
class Shared:
    """The file is in the channel, or soon will be: Slack shares it later and tells no ``ts``, only the file's id."""

    target: Target
    file: str
    unthreaded: Exchange | None = None

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if self.unthreaded is not None and _error(reply) in THREAD_GONE:
            return Success(self.unthreaded)
        receipt = Receipt(self.target.part, self.file, self.target.shown, self.target.notes)
        return read(reply, self.target.shown).map(lambda _: Done((receipt,)))


# --- Errors -----------------------------------------------------------------------------------------------------------

CODES: dict[str, type[SendError]] = {
    # https://docs.slack.dev/reference/methods/chat.postMessage#errors, and those of the other methods used here
    **dict.fromkeys(("channel_not_found", "invalid_channel", "is_archived", "team_not_found"), InvalidRecipient),
    **dict.fromkeys(("user_not_found", "user_not_visible", "user_disabled", "cannot_dm_bot"), InvalidRecipient),
    **dict.fromkeys(("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"), Denied),
    **dict.fromkeys(("missing_scope", "not_allowed_token_type", "no_permission", "access_denied"), Denied),
    **dict.fromkeys(("not_in_channel", "posting_to_channel_denied", "messages_tab_disabled"), Denied),
    **dict.fromkeys(("ekm_access_denied", "org_login_required", "team_access_not_granted"), Denied),
    **dict.fromkeys(("restricted_action", "restricted_action_read_only_channel", "file_uploads_disabled"), Denied),
    **dict.fromkeys(("restricted_action_thread_locked", "restricted_action_non_threadable_channel"), Denied),
    "restricted_action_thread_only_channel": Denied,
    **dict.fromkeys(("no_text", "msg_too_long", "msg_blocks_too_long", "too_many_attachments"), Invalid),
    **dict.fromkeys(("invalid_blocks", "invalid_blocks_format", "markdown_text_conflict"), Invalid),
    **dict.fromkeys(("attachment_payload_limit_exceeded", "file_upload_size_restricted"), Invalid),
    **dict.fromkeys(("file_type_not_allowed", "file_not_found", "cannot_reply_to_message"), Invalid),
    **dict.fromkeys(("thread_not_found", "invalid_arguments", "invalid_arg_name", "unknown_method"), Invalid),
    **dict.fromkeys(("invalid_charset", "invalid_form_data", "invalid_json", "invalid_post_type"), Invalid),
    **dict.fromkeys(("ratelimited", "rate_limited"), RateLimited),
    **dict.fromkeys(("service_unavailable", "request_timeout"), Unavailable),
}

HALF_DONE = frozenset({"fatal_error", "internal_error"})
"""Of these Slack says that some of the operation may have succeeded."""

THREAD_GONE = frozenset({"cannot_reply_to_message", "thread_not_found"})

MEANING = {
    "not_in_channel": "invite the bot to the channel",
    "is_archived": "the channel is archived",
    "team_not_found": "with an org-wide token, name the channel by its id",
    "messages_tab_disabled": "switch on the app's Messages tab",
    "message_limit_exceeded": "the workspace's plan takes no more messages for now",
    "storage_limit_reached": "the workspace's plan has no room for files",
}


def read(reply: HttpReply, recipient: str = "") -> Result[Any, SendError]:
    """The body of ``{"ok": true}``; or what ``{"ok": false, "error"}``, which mostly comes with status 200, is."""
    if reply.status != 200 or _error(reply):
        return Failure(failure_of(reply, recipient))
    return read_json(reply).bind(lambda body: _agreed(reply, body))


def _agreed(reply: HttpReply, body: Any) -> Result[Any, Malformed]:
    if at(body, "ok") is True:
        return Success(body)
    return Failure(Malformed(reply.status, reply.reason, detail="the answer has no 'ok'"))


def _error(reply: HttpReply) -> str:
    body = read_json(reply).value_or(None)
    return text_at(body, "error") or "unknown_error" if at(body, "ok") is False else ""


def failure_of(reply: HttpReply, recipient: str = "") -> SendError:
    """``{"error", "needed", "response_metadata": {"messages"}}``; waits only by ``Retry-After``, in seconds."""
    body, code = read_json(reply).value_or(None), _error(reply)
    scope = text_at(body, "needed")
    words = (
        MEANING.get(code, ""),
        f"the token lacks the scope {scope}" if scope else "",
        *map(str, _items(at(body, "response_metadata", "messages"))),
    )
    said = "; ".join(filter(None, words))
    detail = f"{code} ({said})" if code and said else code or said
    if code in HALF_DONE:
        return Unavailable(reply.status, reply.reason, code, detail, True, wait_of(reply))
    return failure(reply, code=code, detail=detail, table=CODES, recipient=recipient)


def _warnings(body: Any) -> tuple[str, ...]:
    return (*text_at(body, "warning").split(","), *map(str, _items(at(body, "response_metadata", "warnings"))))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# --- Looking up and probing -------------------------------------------------------------------------------------------


def look_up(at: Configured[Settings], to: Recipient, lesson: Learned) -> Exchange:
    """The id behind a user (their DM, opened) or a name (looked for among the public channels)."""
    if to.kind == "user":
        request = _post(at, "conversations.open", {"users": to.id}, repeatable=True)
        return Exchange(request, Opened(to.id, lesson), _scope(at, "conversations.open"))
    return list_page(at, to.id, lesson)


@dataclass(frozen=True, slots=True)
class Opened:
    """The DM with a user; nothing shows in it yet."""

    user: str
    lesson: Learned

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.user).bind(lambda body: _learned(self.lesson, text_at(body, "channel", "id"), reply))


def _learned(lesson: Learned, id: str, reply: HttpReply) -> Result[Step, SendError]:
    if not id:
        return Failure(Malformed(reply.status, reply.reason, detail="the answer has no channel id"))
    return Success(Done(learned=(replace(lesson, value=id),)))


def list_page(at: Configured[Settings], name: str, lesson: Learned, cursor: str = "", page: int = 1) -> Exchange:
    """One page of the public channels.

    The URL's fragment tells people and :func:`rehearse` what is looked for; fragments never leave.
    """
    query = (("types", "public_channel"), ("exclude_archived", "true"), ("limit", str(PAGE)))
    further = (("cursor", cursor),) if cursor else ()
    request = _get(at, f"conversations.list#{segment(name.removeprefix('#'))}", *query, *further)
    return Exchange(request, Listed(at, name, lesson, page), _scope(at, "conversations.list"))


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of channels: the one looked for is on it, or on the next."""

    at: Configured[Settings]
    name: str
    lesson: Learned
    page: int

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.name).bind(lambda body: self._look(body, reply))

    def _look(self, body: Any, reply: HttpReply) -> Result[Step, SendError]:
        for channel in _items(at(body, "channels")):
            if "#" + text_at(channel, "name") == self.name:
                return _learned(self.lesson, text_at(channel, "id"), reply)
        cursor = text_at(body, "response_metadata", "next_cursor")
        if cursor and self.page < MOST_PAGES:
            return Success(list_page(self.at, self.name, self.lesson, cursor, self.page + 1))
        return Failure(InvalidRecipient(self.name, "a public channel's name, or the channel's id (C...)"))


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Who we are; and whether the channel is there and open, the DM can be opened, the name is found."""
    if recipient is None:
        return Exchange(_post(at, "auth.test", {}, repeatable=True), There(""), _scope(at, "auth.test"))
    if recipient.kind != "channel":
        return look_up(at, recipient, lesson_on(at, recipient, 0.0))
    request = _get(at, "conversations.info", ("channel", recipient.id))
    return Exchange(request, There(recipient.id), _scope(at, "conversations.info"))


@dataclass(frozen=True, slots=True)
class There:
    """The answer about ourselves, or about a channel."""

    channel: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.channel).bind(self._open)

    def _open(self, body: Any) -> Result[Step, SendError]:
        if at(body, "channel", "is_archived") is True:
            return Failure(InvalidRecipient(self.channel, detail=MEANING["is_archived"]))
        return Success(Done())


def rehearse(request: Any) -> HttpReply:
    """The success that Slack would answer; a place to upload to is at the same host."""
    url, _, looked_for = str(request.url).partition("#")
    base, _, method = url.rpartition("/")
    if method == "rehearsed-upload":
        return HttpReply(200, "OK", (), b"OK")
    answers: dict[str, dict[str, Any]] = {
        "chat.postMessage": {"channel": "C0REHEARSED", "ts": "1700000000.000100"},
        "files.getUploadURLExternal": {"upload_url": f"{base}/rehearsed-upload", "file_id": "F0REHEARSED"},
        "files.completeUploadExternal": {"files": [{"id": "F0REHEARSED"}]},
        "conversations.open": {"channel": {"id": "D0REHEARSED"}},
        "conversations.list": {"channels": [{"id": "C0REHEARSED", "name": unquote(looked_for)}]},
    }
    return HttpReply(200, "OK", (), json.dumps({"ok": True, **answers.get(method, {})}).encode())


CHANNEL = Channel(
    platform="slack",
    settings=Settings,
    capabilities=Capabilities(media=True, reply=True),
    limits=Limits(text=TEXT, caption=TEXT, any_file=FILE),
    dialect=SLACK_MRKDWN,
    pace=(Pace(1, 1.0, By.CHAT),),
    describe=describe,
    recipient=recipient,
    default_recipient=default_recipient,
    default_key="channel_id",
    probe=probe,
    same=same,
    rehearse=rehearse,
)
