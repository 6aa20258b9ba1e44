"""The gateway's protocol as values, for both of its ends, and the tool ``gateway`` that speaks it.

``protocol``: messages, frames, outcomes, close codes. ``targets``: what a message may be sent to. ``access``: who may
come in. ``status``, ``openapi``: its two documents. ``tool``: from a tool call to the exchange and back to a sentence.
"""
