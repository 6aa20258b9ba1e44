# ruff: noqa: E501 (a row of a table stands in one line)
"""Variables are put into texts after parsing, and never change anything else."""

import pytest
from settings_of import faults_of, read, toy, toy_of

from messaging_core.config.environment import fill


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${A}", "aaa"),
        ("x${A}y${A}", "xaaayaaa"),
        ("${B:-default}", "default"),
        ("${E:-default}", "default"),
        ("${A:-default}", "aaa"),
        ("${B:-}", ""),
        ("${B:-a:-b $5}", "a:-b $5"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$$A $A $5 $ {A}", "$$A $A $5 $ {A}"),
        ("price $5", "price $5"),
        ("${NESTED}", "${A}"),
        ("${_x1}", "u"),
        ("a$", "a$"),
    ],
)
def test_placeholders(text, filled):
    environment = {"A": "aaa", "E": "", "NESTED": "${A}", "_x1": "u"}
    assert fill(text, environment).unwrap().text == filled


@pytest.mark.parametrize(
    "text", ["${1BAD}", "${A-B}", "${UNCLOSED", "${}", "${A:B}", "${A:=b}", "${ A}", "${A:-${B}}", "${É}"]
)
def test_what_only_looks_like_a_placeholder_is_refused_and_never_replaced(text):
    (gap,) = fill(text, {"A": "aaa", "B": "bbb"}).failure()
    assert "is not a placeholder" in gap.problem
    assert "aaa" not in gap.problem


def test_every_missing_variable_is_named():
    assert [gap.problem for gap in fill("${X} ${Y}", {}).failure()] == [
        "the environment variable X is not set",
        "the environment variable Y is not set",
    ]


def test_a_variable_cannot_change_the_structure_of_the_file():
    own = toy_of("title: ${T}\nchat_id: '${T}'", environment={"T": "a\n    tls: false\n    x: '"})
    assert own.tls is True
    assert own.title == "a\n    tls: false\n    x: '"


def test_truth_values_and_numbers_may_come_from_the_environment():
    environment = {"TLS": "false\n", "PORT": "25", "WAIT": "1.5", "BAD": "many"}
    own = toy_of("tls: ${TLS}\nport: '${PORT}'\npatience: ${WAIT:-3}", environment=environment)
    assert (own.tls, own.port, own.patience) == (False, 25, 1.5)
    own = toy_of("tls = '${TLS}'\nport = '${PORT}'", "toml", environment)
    assert (own.tls, own.port) == (False, 25)
    assert "whole number" in faults_of(toy("port = '${BAD}'", "toml"), "toml", environment)[0][2]


def test_a_missing_token_is_named_with_its_key():
    text = "channels:\n  ops:\n    type: toy\n    token: ${DEMO_TOKEN}\n"
    ((line, key, sentence),) = faults_of(text)
    assert (line, key) == (4, "channels.ops.token")
    assert "DEMO_TOKEN is not set" in sentence
    assert "DEMO_TOKEN is empty" in faults_of(text, environment={"DEMO_TOKEN": ""})[0][2]
    assert "is empty" in faults_of(text.replace("}", ":-}"))[0][2]
    assert "is empty" in faults_of(text, environment={"DEMO_TOKEN": " \n"})[0][2]


def test_keys_and_sections_that_are_left_alone_need_no_variables():
    text = toy("app_token: ${NOT_SET}\nverify_token: ${1BAD") + "memory:\n  key: ${NOT_SET}\n"
    assert read(text).unwrap().settings.named == ("ops",)
