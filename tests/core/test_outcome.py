"""The sentences: the ancestor's letter for ``message``, and never "sent" for less."""

import pytest

from messaging_core.errors import (
    Denied,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Rejected,
    SendError,
    Unanswered,
    Unavailable,
    UnknownChannel,
    Unreachable,
)
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, Stopped, Undelivered
from messaging_core.outcome import Outcome, Status, of_done, of_stopped, refused


def never(_: object, /) -> object:
    raise AssertionError


def stopped(cause: SendError, part: Part | None = Part(1, 1), *ids: str) -> Stopped:
    receipts = tuple(Receipt(Part(index, 5), id, "r") for index, id in enumerate(ids, 1))
    return Stopped(Exchange("request", never, Scope("x"), part, receipts), cause)  # type: ignore[arg-type]


def message(outcome: Outcome) -> tuple[Status, str]:
    return outcome.status, outcome.message


def test_delivered_says_what_the_ancestor_said() -> None:
    done = Done((Receipt(Part(1, 1), "7", "the webhook"),))
    assert message(of_done(done, "message", "ops", "webhook", "the webhook", 1)) == (
        Status.DELIVERED,
        "Message sent to ops",
    )


def test_a_cut_is_said() -> None:
    done = Done((Receipt(Part(1, 1), "7", "r", ("cut to 2000 of 2500 characters",)),))
    assert of_done(done, "message", "x", "p", "r", 1).message == "Message sent to x (cut to 2000 of 2500 characters)"


def test_message_send_names_channel_recipient_parts_and_ids() -> None:
    done = Done((Receipt(Part(1, 2), "7", "42"), Receipt(Part(2, 2), "8", "42", ("as plain text",))))
    outcome = of_done(done, "message_send", "tg", "telegram", "42", 2)
    assert outcome.message == "Message sent to tg (42) in 2 parts, ids 7, 8 (as plain text)"
    assert outcome.ids == ("7", "8")
    assert outcome.as_dict()["parts"] == {"delivered": 2, "of": 2}


@pytest.mark.parametrize(
    ("cause", "status", "sentence"),
    [
        (Denied(404, "Not Found"), Status.FAILED, "Failed to send to x: 404 Not Found"),
        (
            Denied(404, "Not Found", "10015", "Unknown Webhook"),
            Status.FAILED,
            "Failed to send to x: 404 Not Found: 10015 Unknown Webhook",
        ),
        (Unavailable(500, "Internal Server Error"), Status.FAILED, "Failed to send to x: 500 Internal Server Error"),
        (
            Unavailable(502, "Bad Gateway", may_have_arrived=True),
            Status.UNCONFIRMED,
            "Failed to send to x: 502 Bad Gateway; it may have arrived",
        ),
        (Unreachable(), Status.FAILED, "Failed to send to x: could not connect"),
        (
            Unanswered("no answer after 30 s"),
            Status.UNCONFIRMED,
            "Delivery to x is unconfirmed: no answer after 30 s; it may have arrived",
        ),
        (RateLimited(429, "Too Many Requests", after=2.0), Status.FAILED, "Failed to send to x: 429 Too Many Requests"),
        (Rejected(200, "OK", "not_in_channel"), Status.FAILED, "Failed to send to x: 200 OK: not_in_channel"),
        (
            Malformed(200, "OK", detail="the answer is empty, not JSON"),
            Status.UNCONFIRMED,
            "Failed to send to x: 200 OK: the answer is empty, not JSON; it may have arrived",
        ),
        (
            Malformed(400, "Bad Request", detail="the answer is an HTML page, not JSON"),
            Status.FAILED,
            "Failed to send to x: 400 Bad Request: the answer is an HTML page, not JSON",
        ),
        (
            InvalidRecipient("r", "", "chat not found", 400, "Bad Request"),
            Status.FAILED,
            "Failed to send to x: 400 Bad Request: chat not found",
        ),
    ],
)
def test_a_stop_says_no_more_than_is_known(cause: SendError, status: Status, sentence: str) -> None:
    assert message(of_stopped(stopped(cause), "message", "x", "p", "r", 1)) == (status, sentence)


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        (RateLimited(429, "Too Many Requests", after=600.0), "429 Too Many Requests: retry after 600 s"),
        (RateLimited(429, "", detail="You are limited", after=0.65), "429: You are limited; retry after 0.65 s"),
        (RateLimited(429, "", detail="Flood: retry after 35", after=35.0), "429: Flood: retry after 35"),
        (Unavailable(503, "Service Unavailable", after=90000.0), "503 Service Unavailable: retry after 90000 s"),
        (RateLimited(429, "Too Many Requests"), "429 Too Many Requests"),
    ],
)
def test_a_wait_that_was_named_is_told_with_its_figure(cause: SendError, sentence: str) -> None:
    outcome = of_stopped(stopped(cause), "message_send", "x", "p", "r", 1)
    assert outcome.message == f"Failed to send to x: {sentence}"
    assert outcome.as_dict()["error"].get("after") == getattr(cause, "after")


def test_a_refusal_of_the_recipient_names_the_recipient() -> None:
    cause = InvalidRecipient("#nosuch", "", "channel_not_found", 200, "OK")
    outcome = of_stopped(stopped(cause), "message_send", "sl", "slack", "#nosuch", 1)
    assert outcome.message == "Failed to send to sl (#nosuch): 200 OK: channel_not_found"


def test_an_unanswered_upload_is_a_failure_with_nothing_visible() -> None:
    outcome = of_stopped(stopped(Unanswered("no answer after 30 s"), None), "message_send", "x", "p", "r", 1)
    assert message(outcome) == (Status.FAILED, "Failed to send to x: no answer after 30 s; nothing is visible")


def test_a_stop_in_the_middle_is_partial_and_names_what_is_there() -> None:
    outcome = of_stopped(
        stopped(Denied(403, "Forbidden", "", "bot was kicked"), Part(3, 5), "7", "8"),
        "message_send",
        "tg",
        "telegram",
        "42",
        5,
    )
    assert message(outcome) == (
        Status.PARTIAL,
        "Partly sent to tg (42): 2 of 5 parts arrived (ids 7, 8); stopped at part 3: 403 Forbidden: bot was kicked",
    )


def test_an_unconfirmed_part_in_the_middle_is_said_to_be_so() -> None:
    outcome = of_stopped(
        stopped(Unanswered("no answer after 2 s"), Part(2, 5), "7"), "message_send", "tg", "telegram", "42", 5
    )
    assert (
        outcome.message
        == "Partly sent to tg (42): 1 of 5 parts arrived (id 7); part 2 is unconfirmed: no answer after 2 s; it may have arrived"
    )


def test_refused_recipients_make_it_partial_and_all_of_them_a_failure() -> None:
    lost = (Undelivered("b@x.test", Denied(550, "no such user")),)
    some = of_done(
        Done((Receipt(Part(1, 1), "<1@x>", "a@x.test"),), lost),
        "message_send",
        "mail",
        "email",
        "a@x.test, b@x.test",
        1,
    )
    none = of_done(Done((), lost), "message_send", "mail", "email", "b@x.test", 1)
    assert (some.status, none.status) == (Status.PARTIAL, Status.FAILED)
    assert "b@x.test (550 no such user)" in some.message
    assert none.message == "Failed to send to mail: b@x.test (550 no such user)"


def test_a_refusal_is_its_own_sentence() -> None:
    outcome = refused("message", UnknownChannel("c", ("a", "b")))
    assert message(outcome) == (Status.REFUSED, "Unknown channel: c. Available channels: a, b")
    assert outcome.as_dict()["error"] == {"class": "UnknownChannel", "detail": outcome.message}
