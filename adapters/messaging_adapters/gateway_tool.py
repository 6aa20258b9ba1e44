"""A call of the tool ``gateway``, by the same steps as any send: read, permit, ask, record, send, record."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from returns.pipeline import is_successful
from returns.result import Result, Success

from messaging_adapters.permission import Permission
from messaging_adapters.sending import Line, Sender
from messaging_core import audit, policy
from messaging_core.config.settings import Settings
from messaging_core.errors import PolicyDenied, Proposal, Refusal
from messaging_core.flow import Done, Exchange
from messaging_core.gateway.answers import status_document
from messaging_core.gateway.tool import NAME, GatewayCall, describe, parse, report
from messaging_core.message import Ids
from messaging_core.outcome import Outcome, Status
from messaging_core.pacing import Retry


class GatewayTool:
    """Talks to the configured gateway. ``ids`` makes new ones for each call."""

    def __init__(self, settings: Settings, sender: Sender, permission: Permission, ids: Any) -> None:
        self._settings, self._sender, self._permission, self._ids = settings, sender, permission, ids

    def call(self, arguments: Mapping[str, Any]) -> Outcome:
        """Do what the arguments say, or say why not."""
        ids = self._ids()
        refuse = partial(self._refused, audit.Event(ids.message, NAME, NAME))
        return parse(arguments).map(partial(self._go, ids)).lash(lambda refusal: Success(refuse(refusal))).unwrap()

    def _go(self, ids: Ids, call: GatewayCall, approved: Proposal | None = None) -> Outcome:
        event = audit.Event(ids.message, NAME, NAME, NAME, call.target or "the gateway", call.action, parts=1)
        permitted: Result[Exchange, Refusal] = self._exchange(ids, call).bind(
            lambda exchange: (
                self._permission.of(self._proposal(ids, call), partial(self._again, call), approved)
                .map(lambda _: exchange)
                .alt(_as_refusal)
            )
        )
        if not is_successful(permitted):
            return self._refused(event, permitted.failure())
        retry = Retry(self._settings.max_wait, self._settings.max_attempts, self._settings.message_timeout_secs)
        return _told(call, self._sender.send(permitted.unwrap(), Line(NAME, NAME, retry), event))

    def _again(self, call: GatewayCall, approved: Proposal) -> Outcome:
        return self._go(self._ids(), call, approved)

    def _exchange(self, ids: Ids, call: GatewayCall) -> Result[Exchange, Refusal]:
        verdict = policy.verdict(self._settings.security.tool_policy, NAME, action=call.action)
        if isinstance(verdict, PolicyDenied):
            return Result.from_failure(verdict)
        return describe(call, self._settings.gateway, ids)

    def _proposal(self, ids: Ids, call: GatewayCall) -> Proposal | None:
        verdict = policy.verdict(self._settings.security.tool_policy, NAME, action=call.action)
        if not isinstance(verdict, policy.NeedsApproval) or call.post is None:
            return None
        post, approval = call.post, self._settings.security.approval
        contents = (post.type, post.content, post.extra, post.id or "")
        return policy.proposal_of(
            NAME, NAME, call.target or "the gateway", call.action, contents, approval, ids, post.content
        )

    def _refused(self, event: audit.Event, refusal: Refusal) -> Outcome:
        return self._sender.refuse(NAME, refusal, event)


def _as_refusal(refusal: Refusal) -> Refusal:
    return refusal


def _told(call: GatewayCall, outcome: Outcome) -> Outcome:
    """A call that was done is told in the gateway's own words."""
    if outcome.status is not Status.DELIVERED:
        return outcome
    done = Done(outcome.receipts)
    document = status_document(done)
    details = () if document is None else (("gateway", document),)
    return replace(outcome, message=report(call, done), details=details)
