"""The room that stands behind an alias on Matrix, and the one that a person is met in.

Both are found before anything is sent, and are handed on as the last thing learned. A person's room is the one that the
account's ``m.direct`` names, else a new one: https://spec.matrix.org/latest/client-server-api/#direct-messaging
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from returns.result import Result, Success

from messaging_core.channels._matrix import Account, Fine, read, read_text
from messaging_core.errors import SendError
from messaging_core.flow import Done, Exchange, Learned, Step
from messaging_core.wire.http import HttpReply, at, segment, text_at

MOST_ROOMS = 5
"""How many of the rooms with a person are looked at before a new one is made."""


def resolve(account: Account, alias: str, lesson: Learned) -> Exchange:
    """The alias's room; ``lesson``: what is learned by it, still without its value.

    https://spec.matrix.org/latest/client-server-api/#get_matrixclientv3directoryroomroomalias
    """
    return account.get(f"/directory/room/{segment(alias)}", Resolved(alias, lesson))


@dataclass(frozen=True, slots=True)
class Resolved:
    """The alias stands for a room."""

    alias: str
    lesson: Learned

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "room_id", self.alias).map(lambda room: _learned(self.lesson, room))


def _learned(lesson: Learned, room: str) -> Done:
    return Done(learned=(replace(lesson, value=room),))


# --- A person: who we are, which rooms we have, whether they are in one; else a new one -------------------------------


@dataclass(frozen=True, slots=True)
class Meeting:
    """A person, and the room to be found for both of us. ``me``: our own user id. ``direct``: the account's
    ``m.direct`` (user -> their rooms), as JSON. ``rooms``: those of them that are still to be looked at, the latest
    first.
    """

    account: Account
    user: str
    lesson: Learned
    me: str = ""
    direct: str = "{}"
    rooms: tuple[str, ...] = ()

    @property
    def account_data(self) -> str:
        return f"/user/{segment(self.me)}/account_data/m.direct"


def meet(account: Account, user: str, lesson: Learned) -> Exchange:
    """The person's room; ``lesson``: what is learned by it, still without its value."""
    return account.get("/account/whoami", Introduced(Meeting(account, user, lesson)))


@dataclass(frozen=True, slots=True)
class Introduced:
    """Who we are: ask for the rooms that we have with people."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "user_id", self.meeting.user).map(self._ask)

    def _ask(self, me: str) -> Step:
        meeting = replace(self.meeting, me=me)
        return meeting.account.get(meeting.account_data, Remembered(meeting))


@dataclass(frozen=True, slots=True)
class Remembered:
    """The rooms that we have with people; 404 where none were ever noted."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if reply.status == 404:
            return Success(look(self.meeting))
        return read(reply, self.meeting.user).map(self._look)

    def _look(self, direct: Any) -> Step:
        noted = at(direct, self.meeting.user)
        rooms = [room for room in noted if isinstance(room, str)] if isinstance(noted, list) else []
        direct = direct if isinstance(direct, dict) else {}
        latest = tuple(reversed(rooms[-MOST_ROOMS:]))
        return look(replace(self.meeting, direct=json.dumps(direct), rooms=latest))


def look(meeting: Meeting) -> Exchange:
    """Whether the person is in the next of the rooms; where none is left, whether there is such a person at all.

    A homeserver makes rooms for people that there are not, and takes messages for them.
    """
    user = segment(meeting.user)
    if not meeting.rooms:
        return meeting.account.get(f"/profile/{user}", Exists(meeting))
    return meeting.account.get(f"/rooms/{segment(meeting.rooms[0])}/state/m.room.member/{user}", Seen(meeting))


@dataclass(frozen=True, slots=True)
class Seen:
    """The person is in the room or invited to it; else on to the next (403: we are not in it ourselves)."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if reply.status in (403, 404):
            return Success(self._judge(None))
        return read(reply, self.meeting.user).map(self._judge)

    def _judge(self, member: Any) -> Step:
        room, *others = self.meeting.rooms
        if text_at(member, "membership") in ("join", "invite"):
            return _learned(self.meeting.lesson, room)
        return look(replace(self.meeting, rooms=tuple(others)))


@dataclass(frozen=True, slots=True)
class Exists:
    """There is such a person, or their server does not tell (403, 5xx): make a room."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if reply.status == 403 or reply.status >= 500:
            return Success(self._make())
        return read(reply, self.meeting.user).map(lambda _: self._make())

    def _make(self) -> Step:
        account, user = self.meeting.account, self.meeting.user
        room = {"is_direct": True, "invite": [user], "preset": "trusted_private_chat"}
        return account.post("/createRoom", room, Made(self.meeting), account.scope(user, "createRoom"))


@dataclass(frozen=True, slots=True)
class Made:
    """There is a new room: note it where clients look for it."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "room_id", self.meeting.user).map(self._note)

    def _note(self, room: str) -> Step:
        meeting, direct = self.meeting, json.loads(self.meeting.direct)
        noted = direct.get(meeting.user)
        direct[meeting.user] = [*(noted if isinstance(noted, list) else []), room]
        found = _learned(meeting.lesson, room)
        step = meeting.account.put(meeting.account_data, direct, Fine(meeting.user, found), meeting.user)
        return replace(step, learned=found.learned)  # also where noting it fails
