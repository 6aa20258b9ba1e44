"""The OpenAPI document and the status document agree with the protocol that they tell of."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from returns.pipeline import is_successful

from messaging_core.gateway.openapi import document
from messaging_core.gateway.protocol import FAULTS, OUTCOMES, Fault, Post, handed, read_post, through_channel
from messaging_core.gateway.status import Counts, Status, summary

DOCUMENT = document("1.0", token_needed=True)


def validator(name):
    return Draft202012Validator({**DOCUMENT, "$ref": f"#/components/schemas/{name}"})


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_each_schema_is_json_schema(name):
    Draft202012Validator.check_schema(DOCUMENT["components"]["schemas"][name])


def test_every_reference_is_there():
    def references(value):
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for member in value.values():
                yield from references(member)
        elif isinstance(value, list):
            for member in value:
                yield from references(member)

    names = {reference.removeprefix("#/components/schemas/") for reference in references(DOCUMENT)}
    assert names == set(DOCUMENT["components"]["schemas"])


def test_every_status_that_a_send_may_get_is_told():
    told = {int(status) for status in DOCUMENT["paths"]["/api/send"]["post"]["responses"]}
    others = {"method_not_allowed", "upgrade_required"}
    assert {FAULTS[code] for code in FAULTS if code not in others} | set(OUTCOMES.values()) <= told


def test_a_gateway_without_a_token_asks_for_none():
    assert document("1.0", token_needed=False)["paths"]["/api/send"]["post"]["security"] == []


MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from([None, "text", "ack", "", "x" * 70, "a-b", 5, "é"]),
        "content": st.sampled_from(["", "x", 5, None]) | st.text(st.characters(exclude_categories=("Cs",)), max_size=3),
        "target": st.sampled_from([None, "/ws", "/ws/bob", "*", "ops", "/ws/", "", "/x", 5, "a b"]),
        "id": st.sampled_from([None, "1", "", "a b", "x" * 129, "é"]),
        "from": st.just("me"),
        "data": st.just([1]),
    },
)


@given(MEMBERS, st.booleans())
@settings(deadline=None, max_examples=300)
def test_the_schema_takes_what_the_gateway_takes(value, broadcast):
    schema = validator("Broadcast" if broadcast else "Message")
    assert schema.is_valid(value) == is_successful(read_post(value, broadcast=broadcast))


@pytest.mark.parametrize(
    "outcome",
    [handed(Post("text", "x"), "7", 0), handed(Post("text", "x"), "7", 2)]
    + [through_channel("7", {"status": status, "message": "m", "parts": {}}) for status in OUTCOMES],
)
def test_outcomes_are_as_told(outcome):
    validator("Outcome").validate(outcome)


@pytest.mark.parametrize("code", FAULTS)
def test_faults_are_as_told(code):
    validator("Fault").validate(Fault(code, "no").document())


def test_the_status_is_as_told():
    status = Status("1.0", 61.23456, ("ops",), (("/ws", 2), ("/ws/bob", 1)), 1000, Counts(accepted=3), 4, 500, 1)
    validator("Status").validate(status.document())
    assert status.document()["connections"] == {"total": 3, "limit": 1000, "by_path": {"/ws": 2, "/ws/bob": 1}}
    assert summary(status.document()) == "ok, version 1.0, up 61 s, 3 clients connected, channels: ops"


@pytest.mark.parametrize("document", [{}, {"uptime": "x", "connections": [], "channels": 5}])
def test_a_summary_is_made_of_whatever_came(document):
    assert summary(document)
