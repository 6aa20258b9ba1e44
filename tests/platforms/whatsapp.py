"""A strict model of the WhatsApp Cloud API (https://developers.facebook.com/documentation/business-messaging/whatsapp)."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.adapters.loopback import Item, Request, reply
from tests.platforms.far_end import FarEnd, File, Refusal, json_of, kind_of, pieces, schema_faults

TOKEN = "EAAFAKEwhatsappTOKEN"
PHONE = "106540352242922"
MEGA = 1024 * 1024

# https://developers.facebook.com/documentation/business-messaging/whatsapp/business-phone-numbers/media
TYPES = {
    "image": (("image/jpeg", "image/png"), 5 * MEGA),
    "video": (("video/mp4", "video/3gpp"), 16 * MEGA),
    "audio": (("audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg", "audio/ogg; codecs=opus"), 16 * MEGA),
    "document": ((), 100 * MEGA),
}
CONTENT = {"image/jpeg": "jpeg", "image/png": "png", "video/mp4": "mp4", "audio/mpeg": "mp3", "audio/mp4": "m4a"}
SCHEMAS = {
    "text": "TextMessage",
    "image": "ImageMessage",
    "video": "VideoMessage",
    "audio": "AudioMessage",
    "document": "DocumentMessage",
}
KEYS = {
    "text": {"body", "preview_url"},
    "image": {"id", "caption"},
    "video": {"id", "caption"},
    "audio": {"id", "voice"},
    "document": {"id", "caption", "filename"},
}


@dataclass
class Message:
    id: str
    to: str
    type: str
    text: str
    file: File | None = None
    voice: bool = False
    reply_to: str | None = None
    body: dict[str, Any] = field(default_factory=dict)


class WhatsApp(FarEnd):
    """One business number. ``closed``: those who have not written for a day. ``unreachable``: who cannot be written."""

    def __init__(self, document_limit: int = 100 * MEGA) -> None:
        super().__init__()
        self.messages: list[Message] = []
        self.media: dict[str, File] = {}
        self.existing = {"wamid.EXISTING=="}
        self.closed = {"16505550099"}
        self.unreachable = {"16505550098"}
        self.groups = {"Y2FwaV9ncm91cDox", "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"}
        self.document_limit = document_limit

    def to(self, recipient: str) -> list[Message]:
        return [one for one in self.messages if one.to == recipient]

    def check(self, request: Request) -> tuple[str, Callable[[], Item]]:
        if "access_token" in request.target:
            raise _no(400, 100, "model: the token in the address")
        if request.header("Authorization") != f"Bearer {TOKEN}":
            raise _no(401, 190, "Invalid OAuth access token - Cannot parse access token")
        found = re.fullmatch(r"/v25\.0/(\d+)(/messages|/media)?", request.path)
        if found is None or found[1] != PHONE:
            raise _no(
                400, 100, f"Unsupported {request.method.lower()} request. Object does not exist", error_subcode=33
            )
        match request.method, found[2]:
            case "GET", None:
                return "number", lambda: reply(json={"id": PHONE, "display_phone_number": "1", "verified_name": "n"})
            case "POST", "/media":
                return self._upload(request)
            case "POST", "/messages":
                return self._message(request)
        raise _no(400, 100, f"Unsupported {request.method.lower()} request")

    # --- Media ------------------------------------------------------------------------------------------------------

    def _upload(self, request: Request) -> tuple[str, Callable[[], Item]]:
        try:
            form = {piece.name: piece for piece in pieces(request)}
        except (ValueError, UnicodeDecodeError) as error:
            raise _no(400, 100, f"(#100) model: {error}") from None
        if set(form) - {"messaging_product", "type", "file"}:
            raise _no(400, 100, f"(#100) model: unknown fields {sorted(form)}")
        if "messaging_product" not in form or form["messaging_product"].data != b"whatsapp":
            raise _no(400, 100, "(#100) The parameter messaging_product is required.")
        if "file" not in form or not form["file"].filename:
            raise _no(400, 100, "(#100) The parameter file is required.")
        piece = form["file"]
        mime = piece.mime or ""
        if "type" in form and form["type"].data.decode() != mime:
            raise _no(400, 100, "(#100) model: two types for one file")
        wanted = CONTENT.get(mime)
        if wanted and kind_of(piece.data) != wanted:
            raise _no(400, 100, f"(#100) Param file must be a file with the type {mime}")
        if mime.startswith("audio/ogg") and kind_of(piece.data) != "opus":
            raise _no(400, 131053, "Media upload error", details="Audio is not opus")
        if not re.fullmatch(r"[a-z]+/[a-z0-9.+-]+(; codecs=opus|;charset=utf-8|; charset=utf-8)?", mime):
            raise _no(400, 131053, "Media upload error", details=f"Unsupported media type {mime}")
        if not piece.data or len(piece.data) > self.document_limit:
            raise _no(400, 131052 if piece.data else 100, "Media size")

        def place() -> Item:
            id = str(4490709327384000 + len(self.media))
            self.media[id] = File(piece.filename or "", mime, piece.data)
            return reply(json={"id": id})

        return "media", place

    # --- Messages ---------------------------------------------------------------------------------------------------

    def _message(self, request: Request) -> tuple[str, Callable[[], Item]]:
        try:
            body = json_of(request)
        except (ValueError, UnicodeDecodeError) as error:
            raise _no(400, 100, f"(#100) model: {error}") from None
        kind = body.get("type")
        if kind not in SCHEMAS:
            raise _no(400, 131051, "Unsupported message type")
        known = {
            "messaging_product",
            "recipient_type",
            "to",
            "recipient",
            "type",
            "context",
            kind,
            "biz_opaque_callback_data",
        }
        if set(body) - known:
            raise _no(400, 100, f"(#100) Unexpected key {sorted(set(body) - known)}")
        # A business-scoped user id goes into `recipient`, which the description does not know yet.
        described = {key: value for key, value in body.items() if key not in ("recipient", "biz_opaque_callback_data")}
        if "recipient" in body and "to" not in body:
            described["to"] = body["recipient"]
        if faults := schema_faults("whatsapp", SCHEMAS[kind], described):
            raise _no(400, 100, f"(#100) Invalid parameter: {faults}")
        if set(body[kind]) - KEYS[kind]:
            raise _no(400, 100, f"(#100) Unexpected key {sorted(set(body[kind]) - KEYS[kind])} on {kind}")
        to = self._recipient(body)
        message = self._shown(kind, body, to)
        reply_to = body.get("context", {}).get("message_id")
        if reply_to is not None:
            if set(body["context"]) != {"message_id"}:
                raise _no(400, 100, "(#100) Unexpected key on context")
            if reply_to not in self.existing and all(one.id != reply_to for one in self.messages):
                raise _no(400, 131009, "(#131009) Parameter value is not valid", details="message_id is not valid")
            message.reply_to = reply_to
        return "messages", lambda: self._place(message)

    def _recipient(self, body: dict[str, Any]) -> str:
        if "recipient" in body:
            if not re.fullmatch(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}", body["recipient"]):
                raise _no(400, 131009, "(#131009) Parameter value is not valid", details="recipient")
            return str(body["recipient"])
        to = body["to"]
        if body["recipient_type"] == "group":
            if to not in self.groups:
                raise _no(400, 131009, "(#131009) Parameter value is not valid", details="unknown group")
            return str(to)
        digits = re.sub(r"[+ ()-]", "", to)
        if not re.fullmatch(r"[1-9]\d{6,14}", digits):
            raise _no(400, 131009, "(#131009) Parameter value is not valid", details="to is no phone number")
        if digits in self.closed:
            raise _no(400, 131047, "(#131047) Re-engagement message", details="More than 24 hours have passed")
        if digits in self.unreachable:
            raise _no(400, 131026, "(#131026) Message undeliverable", details="Message Undeliverable.")
        return digits

    def _shown(self, kind: str, body: dict[str, Any], to: str) -> Message:
        value = body[kind]
        if kind == "text":
            if not value.get("body", "").strip():
                raise _no(400, 100, "(#100) The parameter text['body'] is required.")
            if len(value["body"]) > 4096:
                raise _no(400, 100, "(#100) Param text['body'] must be at most 4096 characters long.")
            return Message("", to, kind, value["body"], body=body)
        file = self.media.get(value.get("id"))
        if file is None:
            raise _no(400, 131009, "(#131009) Parameter value is not valid", details="media id")
        allowed, limit = TYPES[kind]
        if allowed and file.mime not in allowed:
            raise _no(400, 131053, "Media upload error", details=f"{file.mime} is not shown as {kind}")
        if kind != "document" and len(file.data) > limit:
            raise _no(400, 131053, "Media upload error", details="too large")
        caption = value.get("caption", "")
        if len(caption) > 1024:
            raise _no(400, 100, f"(#100) Param {kind}['caption'] must be at most 1024 characters long.")
        if value.get("voice") and kind_of(file.data) != "opus":
            raise _no(400, 100, "(#100) voice is for OGG with opus")
        shown = File(value.get("filename", file.name), file.mime, file.data)
        return Message("", to, kind, caption, shown, bool(value.get("voice")), body=body)

    def _place(self, message: Message) -> Item:
        self.messages.append(message)
        message.id = "wamid." + base64.b64encode(f"{message.to}:{len(self.messages)}".encode()).decode()
        contact = {"input": message.body.get("to", message.to), "wa_id": message.to}
        shown = {"id": message.id, "message_status": "accepted"}
        return reply(json={"messaging_product": "whatsapp", "contacts": [contact], "messages": [shown]})


def refusal(status: int, code: int, message: str, **more: Any) -> Item:
    return _no(status, code, message, **more).item


def _no(status: int, code: int, message: str, details: str = "", **more: Any) -> Refusal:
    error: dict[str, Any] = {
        "message": message,
        "type": "OAuthException",
        "code": code,
        "fbtrace_id": "AXsgnV2Cm3",
        **more,
    }
    if details:
        error["error_data"] = {"messaging_product": "whatsapp", "details": details}
    return Refusal(reply(status, json={"error": error}), f"{status} {code} {message} {details}")
