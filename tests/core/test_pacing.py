"""Whether a stopped send is taken again, after how long, and how many requests fit into which time."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Result, Success

from messaging_core.channels.channel import By, Configured, Pace, Rules
from messaging_core.config.settings import Settings
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidRecipient,
    Malformed,
    MediaUnreadable,
    RateLimited,
    Rejected,
    SendError,
    Unanswered,
    Unavailable,
    Unreachable,
)
from messaging_core.flow import Done, Exchange, Part, Scope, Step, Stopped
from messaging_core.pacing import (
    LONGEST_HOLD,
    OWN_PACE,
    SLACK,
    Budget,
    GiveUp,
    Hold,
    Retry,
    Wait,
    budgets,
    can_resume,
    earliest,
    hold_after,
    hold_of,
    next_try,
    rate,
    retry_of,
    with_doubt,
)
from messaging_core.wire.http import HttpReply, HttpRequest

SCOPE = Scope("ops", "ops.bot_token", "-100123", "sendMessage")
LIMITS = Retry()


def placed(reply: HttpReply, /) -> Result[Step, SendError]:
    return Success(Done())


POST = Exchange(HttpRequest("POST", "https://chat.test/"), placed, SCOPE, Part(1, 1))
PUT = replace(POST, request=HttpRequest("PUT", "https://chat.test/", repeatable=True))

ARRIVED_NOT = (
    Unreachable(),
    RateLimited(429),
    RateLimited(429, after=2.0),
    Unavailable(503),
    Unavailable(408),
    Unavailable(451, detail="greylisted"),
)
AMBIGUOUS = (
    Unanswered("no answer after 30 s"),
    Unavailable(500),
    Unavailable(502, may_have_arrived=True),
    Unavailable(503, may_have_arrived=True),
    Unavailable(200, code="fatal_error"),
    Unavailable(),
    Malformed(200),
    Malformed(500),
)
FINAL = (
    Invalid(400),
    Denied(401),
    Rejected(200),
    InvalidRecipient("nobody"),
    MediaUnreadable("a.png", "it changed"),
)


@pytest.mark.parametrize("cause", ARRIVED_NOT)
def test_what_certainly_did_not_arrive_is_taken_again(cause: SendError) -> None:
    assert isinstance(next_try(Stopped(POST, cause), 1, 0.0, LIMITS, 0.5), Wait)


@pytest.mark.parametrize("cause", AMBIGUOUS)
def test_what_may_have_arrived_is_taken_again_only_where_a_repeat_does_no_harm(cause: SendError) -> None:
    assert next_try(Stopped(POST, cause), 1, 0.0, LIMITS, 0.5) == GiveUp("it may have arrived")
    assert isinstance(next_try(Stopped(PUT, cause), 1, 0.0, LIMITS, 0.5), Wait)
    assert isinstance(next_try(Stopped(POST, cause), 1, 0.0, Retry(when_unanswered="repeat"), 0.5), Wait)


@pytest.mark.parametrize("cause", FINAL)
def test_what_was_plainly_refused_is_never_taken_again(cause: SendError) -> None:
    for at in (POST, PUT):
        for limits in (LIMITS, Retry(when_unanswered="repeat")):
            assert next_try(Stopped(at, cause), 1, 0.0, limits, 0.5) == GiveUp("repeating it changes nothing")


def test_an_unanswered_upload_is_repeated_only_if_it_says_that_it_may_be() -> None:
    """Nothing of it is visible, but each repeat may leave a file behind."""
    upload = replace(POST, part=None)
    assert isinstance(next_try(Stopped(upload, Unanswered("no answer")), 1, 0.0, LIMITS, 0.5), GiveUp)
    upload = replace(PUT, part=None)
    assert isinstance(next_try(Stopped(upload, Unanswered("no answer")), 1, 0.0, LIMITS, 0.5), Wait)


def test_a_request_of_another_edge_that_does_not_know_about_repeating_is_not_repeated() -> None:
    stopped = Stopped(replace(POST, request=object()), Unanswered("no answer"))
    assert isinstance(next_try(stopped, 1, 0.0, LIMITS, 0.5), GiveUp)


def test_attempts_are_counted() -> None:
    assert isinstance(next_try(Stopped(POST, Unreachable()), 3, 0.0, LIMITS, 0.5), Wait)
    assert next_try(Stopped(POST, Unreachable()), 4, 0.0, LIMITS, 0.5) == GiveUp("tried 4 times")


def test_waits_double_and_keep_a_random_half() -> None:
    stopped = Stopped(POST, Unreachable())
    lows = [next_try(stopped, n, 0.0, Retry(max_attempts=9), 0.0) for n in (1, 2, 3, 4)]
    highs = [next_try(stopped, n, 0.0, Retry(max_attempts=9), 1.0) for n in (1, 2, 3, 4)]
    assert lows == [Wait(0.25), Wait(0.5), Wait(1.0), Wait(2.0)]
    assert highs == [Wait(0.5), Wait(1.0), Wait(2.0), Wait(4.0)]


def test_a_rate_limit_without_a_figure_waits_at_least_a_second() -> None:
    assert next_try(Stopped(POST, RateLimited(429)), 1, 0.0, LIMITS, 0.0) == Wait(1.0)


def test_the_platforms_own_wait_holds_to_the_fraction_and_never_comes_out_shorter() -> None:
    assert next_try(Stopped(POST, RateLimited(429, after=0.65)), 1, 0.0, LIMITS, 0.0) == Wait(0.65)
    assert next_try(Stopped(POST, Unavailable(503, after=7.0)), 1, 0.0, LIMITS, 0.0) == Wait(7.0)


def test_a_wait_longer_than_permitted_is_not_waited_and_is_named() -> None:
    asked = Stopped(POST, RateLimited(429, after=3600.0))
    why = "the platform asks to wait 3600 s, the longest wait is 60 s"
    assert next_try(asked, 1, 0.0, LIMITS, 0.0) == GiveUp(why)


def test_a_wait_past_the_deadline_is_not_begun() -> None:
    asked = Stopped(POST, RateLimited(429, after=20.0))
    assert next_try(asked, 1, 279.0, LIMITS, 0.0) == Wait(20.0)
    assert next_try(asked, 1, 290.0, LIMITS, 0.0) == GiveUp("the next try would be in 20 s, 10 of 300 s are left")
    assert isinstance(next_try(Stopped(POST, Unreachable()), 1, 301.0, LIMITS, 0.0), GiveUp)


@settings(deadline=None, max_examples=200)
@given(
    cause=st.sampled_from(ARRIVED_NOT + AMBIGUOUS + FINAL),
    at=st.sampled_from((POST, PUT)),
    attempt=st.integers(1, 100),
    elapsed=st.floats(0, 1000),
    jitter=st.floats(0, 1),
    limits=st.builds(
        Retry, st.floats(0.1, 100), st.integers(1, 50), st.floats(1, 500), st.sampled_from(("report", "repeat"))
    ),
)
def test_no_wait_passes_a_limit(
    cause: SendError, at: Exchange, attempt: int, elapsed: float, jitter: float, limits: Retry
) -> None:
    found = next_try(Stopped(at, cause), attempt, elapsed, limits, jitter)
    if isinstance(found, Wait):
        assert 0 < found.seconds <= limits.max_wait * 1.1
        assert elapsed + found.seconds <= limits.deadline + 1e-9
        assert attempt < limits.max_attempts
    else:
        assert found.why


def test_going_on_by_hand_shows_nothing_twice_unless_asked_to() -> None:
    unconfirmed = Stopped(POST, Unanswered("no answer"))
    assert not can_resume(unconfirmed)
    assert can_resume(unconfirmed, repeat_unconfirmed=True)
    assert can_resume(Stopped(PUT, Unanswered("no answer")))
    assert can_resume(Stopped(replace(POST, part=None), Unanswered("no answer")))
    assert can_resume(Stopped(POST, Denied(401)))


@pytest.mark.parametrize("last", [Unreachable(), RateLimited(429), Unavailable(503), Unavailable(500)])
@pytest.mark.parametrize("step", [POST, PUT])
def test_a_later_try_that_did_not_get_through_takes_nothing_back(step: Exchange, last: SendError) -> None:
    earlier = Unanswered("no answer")
    assert with_doubt(earlier, Stopped(step, last)) == Stopped(step, earlier)
    assert with_doubt(None, Stopped(step, last)) == Stopped(step, last)


def test_only_a_far_end_that_knows_a_repeat_as_one_settles_what_became_of_the_first() -> None:
    earlier, refused = Unanswered("no answer"), Denied(401)
    assert with_doubt(earlier, Stopped(PUT, refused)) == Stopped(PUT, refused)
    assert with_doubt(earlier, Stopped(POST, refused)) == Stopped(POST, earlier)


def test_of_two_tries_that_may_have_arrived_the_last_is_told() -> None:
    last = Stopped(PUT, Unanswered("no answer after 30 s"))
    assert with_doubt(Unanswered("the connection was lost"), last) == last


def test_the_settings_give_the_limits() -> None:
    channel = Configured("ops", "telegram", None, Rules(when_unanswered="repeat"))
    found = retry_of(Settings(max_wait=5.0, max_attempts=2, message_timeout_secs=9.0), channel)
    assert found == Retry(5.0, 2, 9.0, "repeat")


# --- Holds ------------------------------------------------------------------------------------------------------------


def test_none_remaining_holds_the_scope_until_the_reset() -> None:
    headers = (("x-ratelimit-remaining", "0"), ("X-RateLimit-Reset-After", "0.25"))
    assert hold_of(POST, HttpReply(200, "OK", headers)) == Hold(SCOPE, 0.25)


def test_some_remaining_hold_nothing() -> None:
    headers = (("X-RateLimit-Remaining", "4"), ("X-RateLimit-Reset-After", "2"))
    assert hold_of(POST, HttpReply(200, "OK", headers)) is None
    assert hold_of(POST, HttpReply(200, "OK", (("X-RateLimit-Remaining", "0"),))) is None
    assert hold_of(POST, HttpReply(200)) is None
    assert hold_of(POST, "a reply of another edge") is None


@pytest.mark.parametrize("value", ["soon", "", "nan", "-3"])
def test_an_unreadable_reset_holds_a_second(value: str) -> None:
    headers = (("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset-After", value))
    found = hold_of(POST, HttpReply(200, "OK", headers))
    assert found == (None if value == "" else Hold(SCOPE, 1.0))


def test_a_429_holds_its_scope_and_a_global_one_the_whole_credential() -> None:
    retry = ("Retry-After", "3")
    assert hold_of(POST, HttpReply(429, headers=(retry,))) == Hold(SCOPE, 3.0)
    whole = Hold(Scope("ops", "ops.bot_token"), 3.0)
    assert hold_of(POST, HttpReply(429, headers=(retry, ("X-RateLimit-Global", "true")))) == whole
    body = b'{"message": "limited", "retry_after": 3.0, "global": true}'
    assert hold_of(POST, HttpReply(429, body=body)) == whole


def test_a_stop_holds_the_scope_by_the_platforms_own_field() -> None:
    assert hold_after(Stopped(POST, RateLimited(429, after=1.5))) == Hold(SCOPE, 1.5)
    assert hold_after(Stopped(POST, RateLimited(429))) == Hold(SCOPE, 1.0)
    assert hold_after(Stopped(POST, Unavailable(503, after=4.0))) == Hold(SCOPE, 4.0)
    assert hold_after(Stopped(POST, Unavailable(503))) is None
    assert hold_after(Stopped(POST, Denied(401))) is None


def test_our_own_refusal_is_neither_a_hold_nor_tried_again() -> None:
    """It was made in full knowledge of the deadline, and no platform said anything."""
    own = Stopped(POST, RateLimited(code=OWN_PACE, after=5.0))
    assert hold_after(own) is None
    assert next_try(own, 1, 0.0, LIMITS, 0.0) == GiveUp("there was no room before the deadline")


def test_a_wrong_figure_cannot_silence_a_channel_for_good() -> None:
    assert hold_after(Stopped(POST, RateLimited(429, after=1e8))) == Hold(SCOPE, LONGEST_HOLD)


def test_a_hold_covers_what_its_scope_leaves_open_and_nothing_else() -> None:
    assert Hold(Scope("ops", "ops.bot_token"), 1.0).covers(SCOPE)
    assert Hold(SCOPE, 1.0).covers(SCOPE)
    assert not Hold(SCOPE, 1.0).covers(replace(SCOPE, chat="-100999"))
    assert not Hold(Scope("other"), 1.0).covers(SCOPE)


# --- Budgets ----------------------------------------------------------------------------------------------------------


def test_a_request_has_to_fit_the_pace_of_its_chat_credential_and_method_and_the_owners_rate() -> None:
    pace = (Pace(1, 1.0, By.CHAT), Pace(30, 1.0, By.CREDENTIAL), Pace(5, 2.0, By.METHOD))
    assert budgets(POST, pace, "20/minute") == (
        Budget(("chat", "ops", "ops.bot_token", "-100123"), 1, 1.0),
        Budget(("credential", "ops", "ops.bot_token"), 30, 1.0),
        Budget(("method", "ops", "ops.bot_token", "sendMessage"), 5, 2.0),
        Budget(("channel", "ops"), 20, 60.0),
    )


def test_what_is_not_visible_counts_for_the_credential_only() -> None:
    upload = replace(POST, part=None, scope=Scope("ops", "ops.bot_token"))
    pace = (Pace(1, 1.0, By.CHAT), Pace(30, 1.0, By.CREDENTIAL), Pace(5, 2.0, By.METHOD))
    assert budgets(upload, pace, "20/minute") == (Budget(("credential", "ops", "ops.bot_token"), 30, 1.0),)


@pytest.mark.parametrize(
    ("text", "found"),
    [("20/minute", (20, 60.0)), ("1/second", (1, 1.0)), ("100/day", (100, 86400.0)), ("3/hour", (3, 3600.0))],
)
def test_a_rate_is_a_count_and_a_period(text: str, found: tuple[int, float]) -> None:
    assert rate(text) == found


@pytest.mark.parametrize("text", ["", "20", "many/minute", "20/fortnight", "-1/minute"])
def test_a_rate_in_another_form_than_the_settings_keep_is_a_bug(text: str) -> None:
    with pytest.raises(ValueError, match="20/minute"):
        rate(text)


@settings(deadline=None, max_examples=100)
@given(
    arrivals=st.lists(st.floats(0, 20), max_size=30).map(sorted),
    ahead=st.lists(st.floats(0, 30), max_size=5),
    count=st.integers(1, 5),
    per=st.floats(0.01, 7),
)
def test_no_period_ever_holds_more_than_its_count(
    arrivals: list[float], ahead: list[float], count: int, per: float
) -> None:
    """Whenever requests ask, and whatever moments were given before."""
    taken: list[float] = []
    for moment in (*arrivals, *ahead):
        given_moment = earliest(taken, count, per, moment)
        assert given_moment >= moment
        taken = sorted((*taken, given_moment))
    assert all(later - sooner >= per - 1e-5 for sooner, later in zip(taken, taken[count:]))


def test_a_free_window_has_no_wait() -> None:
    assert earliest((), 1, 5.0, 3.0) == 3.0
    assert earliest((0.0, 0.1), 5, 2.0, 0.2) == 0.2
    assert SLACK < 1
