"""A person's yes: asked for now, or given later for a proposal that was kept."""

import threading
from collections.abc import Callable

from returns.result import Failure, Result, Success

from messaging_adapters.ports import Ports
from messaging_core import policy
from messaging_core.errors import ApprovalRequired, Proposal
from messaging_core.outcome import Outcome

Again = Callable[[Proposal], Outcome]
"""Plan once more what was asked, and send it if it is still what was approved."""


class Permission:
    """Asks the approver; keeps what nobody answered, each until its time is over. May be shared by threads."""

    def __init__(self, ports: Ports, timeout: float) -> None:
        self._ports, self._timeout = ports, timeout
        self._kept: dict[str, tuple[Proposal, Again]] = {}
        self._lock = threading.Lock()

    def of(
        self, proposal: Proposal | None, again: Again, approved: Proposal | None = None
    ) -> Result[None, ApprovalRequired]:
        """Nothing to ask (no proposal), or the yes that was given for just this: ``approved``, or the answer now."""
        if proposal is None:
            return Success(None)
        now = self._ports.clock.now
        if approved is not None:
            return policy.unchanged(approved, proposal, now()).map(lambda _: None)
        answer = self._ports.approver.ask(proposal, self._timeout)
        if answer is None:
            self._keep(proposal, again, now())
        return policy.approved(proposal, answer, now()).map(lambda _: None)

    def _keep(self, proposal: Proposal, again: Again, now: float) -> None:
        with self._lock:
            self._kept = {id: kept for id, kept in self._kept.items() if kept[0].expires > now}
            self._kept[proposal.id] = (proposal, again)

    def taken(self, proposal: Proposal) -> Result[Again, ApprovalRequired]:
        """What sends just this proposal, once; a forged one does not use up the real one."""
        with self._lock:
            kept = self._kept.get(proposal.id)
            if kept is None or kept[0] != proposal:
                return Failure(ApprovalRequired(proposal, "there is no such proposal, or it was used"))
            del self._kept[proposal.id]
            return Success(kept[1])
