"""Which tools may be called, who may be written to, and what an approval is bound to."""

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_core import policy
from messaging_core.channels.channel import Capabilities, Channel, Configured, Known, Rules
from messaging_core.config.settings import Approval, ToolPolicy
from messaging_core.errors import ApprovalRequired, InvalidRecipient, PolicyDenied, Proposal, RecipientBlocked, Refusal
from messaging_core.flow import Done, Step
from messaging_core.markup.dialect import Rendered
from messaging_core.markup.plain import PLAIN
from messaging_core.message import Content, Conversation, FileFacts, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.policy import NeedsApproval, Permitted, recipient_permitted, verdict
from messaging_core.routing import Route

# --- Tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "tool", "found"),
    [
        (ToolPolicy(), "message", Permitted()),
        (ToolPolicy(default="supervised"), "message", NeedsApproval("security.tool_policy.default")),
        (ToolPolicy(default="deny"), "gateway", PolicyDenied("gateway", "security.tool_policy.default")),
        (
            ToolPolicy(default="deny", groups=(("messaging", "supervised"),)),
            "message_send",
            NeedsApproval("security.tool_policy.groups.messaging"),
        ),
        (ToolPolicy(groups=(("messaging", "deny"),), tools=(("message", "allow"),)), "message", Permitted()),
        (ToolPolicy(groups=(("files", "deny"),)), "message", Permitted()),
        (
            ToolPolicy(tools=(("message_send", "deny"),)),
            "message_send",
            PolicyDenied("message_send", "security.tool_policy.tools.message_send"),
        ),
    ],
)
def test_a_tools_own_entry_wins_over_its_group_and_that_over_the_default(
    rules: ToolPolicy, tool: str, found: policy.Verdict
) -> None:
    assert verdict(rules, tool) == found


def test_the_gateway_needs_approval_unless_the_settings_name_it() -> None:
    assert isinstance(verdict(ToolPolicy(), "gateway", action="send"), NeedsApproval)
    assert verdict(ToolPolicy(tools=(("gateway", "allow"),)), "gateway", action="send") == Permitted()
    assert verdict(ToolPolicy(groups=(("messaging", "allow"),)), "gateway", action="send") == Permitted()


def test_asking_the_gateways_status_needs_no_approval_but_a_denied_tool_stays_denied() -> None:
    assert verdict(ToolPolicy(), "gateway", action="status") == Permitted()
    assert verdict(ToolPolicy(default="supervised"), "gateway", action="status") == Permitted()
    denied = ToolPolicy(tools=(("gateway", "deny"),))
    assert isinstance(verdict(denied, "gateway", action="status"), PolicyDenied)
    assert isinstance(verdict(ToolPolicy(default="supervised"), "message", action="status"), NeedsApproval)


@pytest.mark.parametrize("general", policy.STRICTNESS)
@pytest.mark.parametrize("here", policy.STRICTNESS)
@pytest.mark.parametrize("name", ["message", "*"])
def test_of_tool_and_channel_the_stricter_one_holds(general: str, here: str, name: str) -> None:
    rules = ToolPolicy(tools=(("message", general),), channels=((name, "ops", here), ("message_send", "ops", "deny")))
    found = verdict(rules, "message", "ops")
    kinds = {"allow": Permitted, "supervised": NeedsApproval, "deny": PolicyDenied}
    assert isinstance(found, kinds[max(general, here, key=policy.STRICTNESS.index)])
    assert isinstance(verdict(rules, "message", "other"), kinds[general])


def test_a_channels_denial_names_the_channel() -> None:
    for name, rule in (("message", "tools.message.channels.ops"), ("*", "channels.ops")):
        denied = verdict(ToolPolicy(channels=((name, "ops", "deny"),)), "message", "ops")
        assert denied == PolicyDenied("message", f"security.tool_policy.{rule}", "ops")


# --- Recipients -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Own:
    chat: str | None = None


def chat(text: str) -> Result[Recipient, InvalidRecipient]:
    base, _, thread = text.partition("/")
    return Success(Recipient(base, "chat", thread or None, text)) if base else Failure(InvalidRecipient(text))


def describe(at: Configured[Any], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    return Success(Done())


def loose(name: str) -> str:
    """Case, a leading @ and the punctuation of phone numbers make no difference."""
    bare = name.casefold().removeprefix("@")
    return re.sub(r"[ ().-]", "", bare) if bare.startswith("+") else bare


CHAT = Channel(
    "chat",
    Own,
    Capabilities(),
    PLAIN,
    describe,
    chat,
    lambda request: None,
    default_recipient=lambda own: own.chat,
    same=loose,
)


def asked(to: str, *, own: str | None = None, default: bool = False, kept: bool = False, **rules: Any) -> Route:
    at = Configured("home", "chat", Own(own), Rules(**rules))
    return Route(CHAT, at, chat(to).unwrap(), default, kept)


def is_permitted(route: Route, conversation: Conversation | None = None) -> bool:
    return is_successful(recipient_permitted(route, conversation or Conversation()))


def test_without_a_list_everyone_may_be_written_to() -> None:
    assert is_permitted(asked("42"))
    assert is_permitted(asked("42", allowed_recipients=("7",)))


@pytest.mark.parametrize("to", ["@opslead", "OPSLEAD", "@OpsLead", "42", "+15550003333", "+1 (555) 000-3333"])
def test_a_name_on_the_list_is_compared_as_the_platform_sees_it(to: str) -> None:
    assert is_permitted(asked(to, allowed_users=("@OpsLead", "42", "+1 555 000 3333")))


@pytest.mark.parametrize("to", ["@opslead2", "opsle", "420", "4", "-42", "+1555000333", "*", "@"])
def test_only_whole_values_are_equal(to: str) -> None:
    assert not is_permitted(asked(to, allowed_users=("@OpsLead", "42", "+1 555 000 3333")))


def test_a_star_is_everyone_and_an_empty_list_nobody() -> None:
    assert is_permitted(asked("42", allowed_users=("*",)))
    assert not is_permitted(asked("42", allowed_users=()))


def test_a_refusal_names_channel_recipient_and_settings() -> None:
    refusal = recipient_permitted(asked("C0AL2FAKE7J", allowed_users=("#ops",)), Conversation()).failure()
    assert refusal == RecipientBlocked("home", "C0AL2FAKE7J", "allowed_users, allowed_recipients")
    assert "not on the allowlist" in str(refusal)


def test_rooms_and_groups_are_permitted_besides() -> None:
    assert is_permitted(asked("-100123", allowed_users=("42",), allowed_recipients=("-100123",)))
    assert not is_permitted(asked("-100999", allowed_users=("42",), allowed_recipients=("-100123",)))


def test_a_chat_on_the_list_permits_its_threads_and_a_thread_only_itself() -> None:
    assert is_permitted(asked("-100123/7", allowed_users=(), allowed_recipients=("-100123",)))
    assert is_permitted(asked("-100123/7", allowed_users=(), allowed_recipients=("-100123/7",)))
    assert not is_permitted(asked("-100123/8", allowed_users=(), allowed_recipients=("-100123/7",)))
    assert not is_permitted(asked("-100123", allowed_users=(), allowed_recipients=("-100123/7",)))


def test_a_thread_is_permitted_under_each_name_of_its_chat() -> None:
    """Whether the thread was named or comes from the conversation, and whether a name or an id is shown."""
    from_conversation = replace(
        asked("-100123", allowed_users=("-100123/7",)), recipient=Recipient("-100123", thread="7")
    )
    assert is_permitted(from_conversation)
    named = replace(asked("x", allowed_users=("#ops",)), recipient=Recipient("C01", "channel", "7", "#ops/7"))
    assert is_permitted(named)
    assert not is_permitted(replace(named, recipient=Recipient("C01", "channel", "7", "#dev/7")))


def test_a_channel_that_has_but_one_recipient_permits_it() -> None:
    assert is_permitted(asked("webhook", default=True, allowed_users=()))


def test_the_channels_own_default_is_permitted_also_when_it_is_named() -> None:
    assert is_permitted(asked("-100123", own="-100123", default=True, allowed_users=()))
    assert is_permitted(asked("-100123", own="-100123", allowed_users=()))
    assert not is_permitted(asked("-100124", own="-100123", allowed_users=()))
    someone = Recipient("-100123", "user")
    assert not is_permitted(replace(asked("x", own="-100123", allowed_users=()), recipient=someone))


def test_a_default_in_a_thread_permits_that_thread_alone() -> None:
    assert is_permitted(asked("-100123/7", own="-100123/7", allowed_users=()))
    assert is_permitted(asked("-100123/7", own="-100123", allowed_users=()))
    assert not is_permitted(asked("-100123/8", own="-100123/7", allowed_users=()))
    assert not is_permitted(asked("-100123", own="-100123/7", allowed_users=()))


def test_an_answer_may_go_where_a_permitted_person_wrote() -> None:
    """In a group the recipient is the group; whether it may be answered is decided by who wrote."""
    conversation = Conversation("home", "-100123", sender=("42", "@someone"))
    assert is_permitted(asked("-100123", kept=True, allowed_users=("Someone",)), conversation)
    assert not is_permitted(asked("-100123", kept=True, allowed_users=("other",)), conversation)
    assert not is_permitted(asked("-100999", kept=False, allowed_users=("Someone",)), conversation)
    assert not is_permitted(asked("-100123", kept=True, allowed_users=("Someone",)), Conversation("home", "-100123"))


@pytest.mark.parametrize(
    ("to", "permitted"),
    [
        ("ada@company.com", True),
        ("@eve@company.com", False),
        ("eve@evil.org@company.com", False),
        ("Ada@Company.COM", True),
        ("ada@evil.com", False),
        ("ada@company.com.evil.com", False),
        ("ada@sub.company.com", False),
        ("ada@notcompany.com", False),
        ("@company.com", False),
        ("company.com", False),
        ("ada@company.com@evil.com", False),
        ("@ada:company.com", False),
    ],
)
def test_a_mail_domain_permits_its_addresses_alone(to: str, permitted: bool) -> None:
    channel = replace(CHAT, same=str.casefold, recipient=lambda text: Success(Recipient(text, "address")))
    route = replace(asked("x", allowed_users=("@company.com",)), channel=channel, recipient=Recipient(to, "address"))
    # Whoever is called exactly like the entry is named by it: as on platforms whose names begin with @.
    assert is_permitted(route) is (permitted or to == "@company.com")


def test_names_that_the_comparison_leaves_nothing_of_are_not_equal() -> None:
    nothing = replace(CHAT, same=lambda name: re.sub(r"\D", "", name))
    assert not is_permitted(replace(asked("abc", allowed_users=("xyz",)), channel=nothing))
    assert not is_permitted(replace(asked("abc", own="xyz", allowed_users=()), channel=nothing))


# --- Approval ---------------------------------------------------------------------------------------------------------

IDS = Ids("1700000000000aaaaaaaa", 1_700_000_000.0)
FILE = FileFacts("a.png", "/srv/a.png", "a.png", 3, inode=7, sha256="ab" * 32)
PART = TextPart(Rendered("Release at noon", "Release at noon", "<b>Release</b> at noon"))


def proposal(
    *parts: Content,
    facts: FileFacts | None = None,
    preview: str = "Release at noon",
    to: str = "42",
    tool: str = "message",
) -> Proposal:
    return policy.propose(tool, asked(to), "text", parts or (PART,), facts, Approval(timeout_secs=60), IDS, preview)


def test_a_proposal_says_what_would_be_sent_where_and_until_when() -> None:
    found = proposal()
    assert (found.id, found.tool, found.channel, found.recipient) == (IDS.message, "message", "home", "42")
    assert (found.kind, found.preview, found.expires) == ("text", "Release at noon", 1_700_000_060.0)


def test_a_proposal_is_bound_to_every_part_and_to_where_it_goes() -> None:
    media = MediaPart(FILE, Kind.IMAGE, "image/png", PART.text)
    variants = [
        proposal(),
        proposal(replace(PART, text=replace(PART.text, text="Release at one"))),
        proposal(replace(PART, text=replace(PART.text, formatted=None))),
        proposal(PART, PART),
        proposal(media),
        proposal(replace(media, caption=None)),
        proposal(replace(media, facts=replace(FILE, name="b.png"))),
        proposal(replace(media, data=b"made here")),
        proposal(to="43"),
        proposal(to="42/7"),
        proposal(tool="message_send"),
    ]
    assert len({variant.digest for variant in variants}) == len(variants)
    assert all(re.fullmatch("[0-9a-f]{64}", variant.digest) for variant in variants)


def test_two_recipients_that_look_the_same_are_not() -> None:
    looks = [Recipient("1", shown="#ops"), Recipient("2", shown="#ops"), Recipient("1", thread="7", shown="#ops")]
    routes = [replace(asked("x"), recipient=recipient) for recipient in looks]
    proposals = [policy.propose("message", at, "text", (PART,), None, Approval(), IDS, "") for at in routes]
    assert len({one.digest for one in proposals}) == 3


def test_a_proposal_is_bound_to_the_files_content_and_not_to_its_times() -> None:
    touched = replace(FILE, mtime_ns=99, ctime_ns=99, inode=8)
    assert proposal(facts=FILE).digest == proposal(facts=touched).digest
    assert proposal(facts=FILE).digest != proposal(facts=replace(FILE, sha256="cd" * 32)).digest


def test_where_nobody_read_the_file_it_is_bound_to_what_the_shell_compares() -> None:
    unread = replace(FILE, sha256="")
    assert proposal(facts=unread).digest != proposal(facts=replace(unread, mtime_ns=99)).digest


def test_a_preview_can_neither_steer_a_terminal_nor_turn_its_direction_and_says_what_it_leaves_out() -> None:
    assert proposal(preview="a\x1b[2Jb\x07\u202ec").preview == "ab\\u202ec"
    long = proposal(preview="x" * 5000).preview
    assert long == "x" * 1000 + " ... (and 4000 more characters)"


def test_only_a_yes_in_time_is_a_yes() -> None:
    asked_for, now = proposal(), IDS.now + 10
    assert policy.approved(asked_for, True, now) == Success(asked_for)
    for answer, moment, why in (
        (False, now, "refused"),
        (None, now, "nobody answered"),
        (True, asked_for.expires + 0.001, "the answer came too late"),
        (False, asked_for.expires + 1, "refused"),
    ):
        assert policy.approved(asked_for, answer, moment) == Failure(ApprovalRequired(asked_for, why))


def test_what_was_approved_is_what_goes_out() -> None:
    before, now = proposal(), IDS.now + 10
    assert policy.unchanged(before, proposal(), now) == Success(before)
    other = proposal(replace(PART, text=replace(PART.text, text="Release at one")))
    assert policy.unchanged(before, other, now).failure().why == "it is no longer what was approved"
    assert policy.unchanged(before, proposal(), before.expires + 1).failure().why == "the approval is too old"
