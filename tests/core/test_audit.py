"""What the audit log says of a send: two ASCII lines, no content, no secret; and what is read out of it again."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.pipeline import is_successful

from messaging_core.audit import (
    Begin,
    End,
    Event,
    Filters,
    Record,
    as_dict,
    begun,
    ended,
    read,
    refused,
    shown,
    since,
    to_line,
    unfinished,
)
from messaging_core.errors import Denied, InvalidRecipient, RecipientBlocked
from messaging_core.flow import Part, Receipt, Undelivered
from messaging_core.outcome import Outcome, Status
from messaging_core.secrecy import Secrets

NOW = 1_700_000_000.0
NONE = Secrets()
EVENT = Event("1700000000000aaaa", "message_send", "ops", "telegram", "-100123", "media", "out/a.png", 2)


def outcome(status: Status, **more: object) -> Outcome:
    fields = {"channel": "ops", "platform": "telegram", "recipient": "-100123", "parts": 2, "event": EVENT.id} | more
    return Outcome(status, "message_send", "the sentence", **fields)  # type: ignore[arg-type]


def test_the_begin_names_everything_but_the_content() -> None:
    assert json.loads(to_line(begun(EVENT, NOW), NONE)) == {
        "event": "1700000000000aaaa",
        "phase": "begin",
        "time": "2023-11-14T22:13:20.000Z",
        "tool": "message_send",
        "channel": "ops",
        "platform": "telegram",
        "recipient": "-100123",
        "kind": "media",
        "media": "out/a.png",
        "voice": None,
        "parts": 2,
    }


def test_the_end_says_what_became_of_it() -> None:
    receipts = (Receipt(Part(1, 2), "7", "-100123"),)
    stopped = outcome(Status.PARTIAL, receipts=receipts, error=Denied(403, "Forbidden", detail="bot was kicked"))
    line = json.loads(to_line(ended(EVENT, stopped, NOW + 1.5, attempts=3, duration=1.5004), NONE))
    assert line["phase"] == "end"
    assert line["event"] == EVENT.id
    assert {key: line[key] for key in list(line)[11:]} == {
        "status": "partial",
        "ids": ["7"],
        "delivered": [1],
        "undelivered": [],
        "attempts": 3,
        "duration": 1.5,
        "error": "Denied",
        "code": 403,
    }
    assert "kicked" not in str(line)
    assert "sentence" not in str(line)


def test_recipients_refused_inside_a_good_reply_are_named() -> None:
    some = (Undelivered("b@example.org", InvalidRecipient("b@example.org")),)
    assert ended(EVENT, outcome(Status.PARTIAL, undelivered=some), NOW).undelivered == ("b@example.org",)


def test_a_refusal_has_an_end_only() -> None:
    entry = refused(
        outcome(Status.REFUSED, error=RecipientBlocked("ops", "-100123", "allowed_users"), parts=0), NOW, "text"
    )
    assert entry == End(
        Event(EVENT.id, "message_send", "ops", "telegram", "-100123", "text"),
        NOW,
        "refused",
        error="RecipientBlocked",
    )
    assert json.loads(to_line(entry, NONE))["phase"] == "end"


def test_a_voice_path_stands_under_its_own_name() -> None:
    line = json.loads(to_line(Begin(Event("1", "message_send", kind="voice", file="a.ogg"), NOW), NONE))
    assert (line["media"], line["voice"]) == (None, "a.ogg")


HARD = 'a\r\nb\x00\x1b[31m\x7f\x9b\u2028\u202e\ud800"}'


def test_a_line_is_one_line_of_printable_ascii_whatever_is_in_it() -> None:
    """A text from outside cannot forge a second line, steer a terminal or turn the direction of writing."""
    event = Event(HARD, HARD, HARD, HARD, HARD, "media", HARD)
    for line in (to_line(Begin(event, NOW), NONE), to_line(End(event, NOW, HARD, (HARD,), error=HARD), NONE)):
        assert line.endswith("\n")
        assert all(" " <= sign <= "~" for sign in line[:-1])
    assert json.loads(line)["recipient"] == HARD


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=20), max_size=3))
def test_what_is_written_is_read_again(name: str, path: str, ids: list[str]) -> None:
    event = Event("1", name, name, name, name, "media", path or None, 1)
    lines = [to_line(Begin(event, NOW), NONE), to_line(End(event, NOW, "delivered", tuple(ids), (1,)), NONE)]
    time = "2023-11-14T22:13:20.000Z"
    assert read(lines).records == (Record(event, time, time, "delivered", tuple(ids), (1,)),)


def test_no_secret_is_in_a_line_in_any_form() -> None:
    secrets = Secrets({"ops.token": "111111:FAKE-token"})
    event = Event(
        "1", "message_send", "111111:FAKE-token", "", "https://x/111111%3AFAKE-token", "media", "111111:FAKE-token"
    )
    line = to_line(End(event, NOW, "failed", ("111111:FAKE-token",)), secrets)
    assert "FAKE" not in line
    assert line.count("***") == 4


def test_a_secret_at_the_cut_is_not_half_shown() -> None:
    secrets = Secrets({"ops.token": "FAKE-long-token-of-some-length"})
    line = to_line(Begin(Event("1", "x", recipient="y" * 190 + "FAKE-long-token-of-some-length"), NOW), secrets)
    assert "FAKE" not in line


def test_a_text_in_the_place_of_a_name_is_cut() -> None:
    """A model may put its whole message where a channel belongs: that would be content."""
    line = json.loads(to_line(Begin(Event("1", "message", channel="private " * 1000), NOW), NONE))
    assert len(line["channel"]) == 203


# --- Reading ----------------------------------------------------------------------------------------------------------


def log_of(*entries: Begin | End) -> list[str]:
    return [to_line(entry, NONE) for entry in entries]


def event(id: str, channel: str = "ops") -> Event:
    return Event(id, "message_send", channel, "telegram", "-100123", "text", None, 1)


LOG = log_of(
    Begin(event("1"), NOW),
    Begin(event("2", "team"), NOW + 1),
    End(event("1"), NOW + 2, "delivered", ("7",), (1,)),
    End(event("3"), NOW + 3, "refused", error="PolicyDenied"),
    Begin(event("4"), NOW + 4),
    End(event("4"), NOW + 5, "failed", error="Denied", code=401, attempts=2),
)


def ids(records: tuple[Record, ...]) -> list[str]:
    return [record.event.id for record in records]


def test_a_begin_and_its_end_are_one_record_in_the_order_of_beginning() -> None:
    records = read(LOG).records
    assert ids(records) == ["1", "2", "3", "4"]
    assert (records[0].began, records[0].ended) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:22.000Z")
    assert [record.status for record in records] == ["delivered", "unfinished", "refused", "failed"]


def test_what_may_have_gone_out_is_what_began_and_did_not_end() -> None:
    assert ids(unfinished(read(LOG).records)) == ["2"]


def test_an_end_whose_begin_has_been_rotated_away_is_still_a_record() -> None:
    records = read(LOG[2:]).records
    assert (records[0].began, records[0].status) == (None, "delivered")


def test_a_second_begin_of_one_event_changes_nothing() -> None:
    assert read([*LOG, LOG[0]]).records == read(LOG).records


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(channel="ops"), ["1", "3", "4"]),
        (Filters(status="failed"), ["4"]),
        (Filters(status="unfinished"), ["2"]),
        (Filters(since=NOW + 3), ["3", "4"]),
        (Filters(tail=2), ["3", "4"]),
        (Filters(tail=0), []),
        (Filters(channel="ops", tail=1), ["4"]),
    ],
)
def test_filters(filters: Filters, found: list[str]) -> None:
    assert ids(read(LOG, filters).records) == found


@pytest.mark.parametrize(
    "line", ['{"event":"9","pha', "[]", "null", "{}", '{"event":7,"phase":"end"}', "[" * 9000, "\x00"]
)
def test_a_torn_or_foreign_line_is_counted_and_spoils_nothing(line: str) -> None:
    reading = read([LOG[0], line + "\n", "\n", LOG[2]])
    assert reading.unreadable == 1
    assert [record.status for record in reading.records] == ["delivered"]


def test_fields_of_a_wrong_sort_are_left_out() -> None:
    line = '{"event":"1","phase":"end","ids":7,"parts":"x","duration":null,"attempts":[],"code":"x","tool":9}'
    assert read([line]).records == (Record(Event("1", ""), None, ""),)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", NOW - 90),
        ("30m", NOW - 1800),
        ("7d", NOW - 604_800),
        ("2023-11-14", 1_699_920_000.0),
        ("2023-11-14T22:13:20", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
        ("2023-11-14T22:13:20Z", NOW),
        ("999999d", 0.0),
        ("0001-01-01T00:00:00+23:59", 0.0),
    ],
)
def test_a_time_to_begin_from(text: str, moment: float) -> None:
    assert since(text, NOW).unwrap() == moment


@pytest.mark.parametrize("text", ["", "yesterday", "2 weeks", "-1h", "2023-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    assert not is_successful(since(text, NOW))


def test_a_record_is_one_line_for_people() -> None:
    record = read(LOG).records[3]
    assert shown(record) == (
        "2023-11-14T22:13:24.000Z failed message_send ops (telegram) to -100123: "
        "text, 0 of 1 parts, Denied 401, 2 attempts"
    )


def test_what_people_read_is_harmless_too() -> None:
    line = shown(Record(Event("1", "message", HARD, "", HARD, "media", HARD), "now", None))
    assert not any(sign in line for sign in "\r\n\x00\x1b\x7f\x9b\u2028\u202e\ud800")


def test_as_json_a_record_has_the_names_of_the_log() -> None:
    shape = as_dict(read(LOG).records[0])
    assert set(json.loads(LOG[2])) - {"phase", "time"} <= set(shape)
    assert shape["ids"] == ["7"]
