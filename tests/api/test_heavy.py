# SPDX-License-Identifier: MIT
"""What is remembered of this suite (tools/run-suite, heavy.py): only what passed."""
import importlib.machinery
import importlib.util
import pathlib
import xml.etree.ElementTree as tree

import pytest

import heavy

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parents[1] / "tools" / "run-suite"


def test_the_names_are_those_of_tests():
    for name, table in heavy.HEAVY.items():
        text = (HERE / name).read_text()
        for test in table:
            assert f"def {test.partition('[')[0]}(" in text, (name, test)


def test_parameters_can_be_named_and_a_choice_is_left():
    always, often = "tests/api/test_node_zygote.py::test_a_program_sees_what_a_fresh_node_shows[{}]", "tests/api/test_attacks.py::{}"
    assert heavy.reason(always.format("sync")) is None and heavy.reason(always.format("udp")) == heavy.TABLE
    assert heavy.reason(often.format("test_everything_holds[ordinary work]")) == heavy.FOREIGN
    assert heavy.reason(often.format("test_everything_holds[host-]")) is None
    assert heavy.reason("tests/api/test_meta.py::test_rootless") is None


def case(name, *children, is_heavy=False):
    made = tree.Element("testcase", {"classname": "c", "name": name})
    if is_heavy:
        tree.SubElement(tree.SubElement(made, "properties"), "property", {"name": "heavy", "value": "why"})
    made.extend(tree.Element(child) for child in children)
    return made


class Suite:
    """The tool with a suite of two tests, of which one is heavy."""

    def __init__(self, directory):
        loader = importlib.machinery.SourceFileLoader("run_suite", str(TOOL))
        self.tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_suite", loader))
        loader.exec_module(self.tool)
        self.tool.run, self.junit = self.run, directory / "suite.junit.xml"
        self.ran, self.bad, self.again = [], set(), set()

    def run(self, _build, _cache, _junit, *arguments):
        bad, names = self.bad, ["light", "hard"]
        if "--last-failed" in arguments:
            names, bad = [n for n in names if n in bad], self.bad - self.again
        elif "not alone and not heavy" in arguments:
            names = ["light"]
        self.ran += names
        cases = {f"c::{n}": case(n, *(["failure"] if n in bad else []), is_heavy=n == "hard") for n in names}
        return int(bool(bad & set(names))), cases

    def check(self, same):
        """(exit status, what was run, which cases the report calls remembered)."""
        self.ran.clear()
        status = self.tool.main("build", "2", "load", str(self.junit), "beside", "tests", same=same)
        cases = list(tree.parse(self.junit).iter("testcase"))
        assert sorted(c.get("name") for c in cases) == ["hard", "light"]
        return status, list(self.ran), [c.get("name") for c in cases
                                        if c.find("properties/property[@name='remembered']") is not None]


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.delenv("CHECK_FRESH", raising=False)
    monkeypatch.delenv("CI", raising=False)
    return Suite(tmp_path)


ALL = (0, ["light", "hard"], [])
REMEMBERED = (0, ["light"], ["hard"])


def test_what_passed_is_remembered_while_all_is_the_same(suite):
    assert suite.check("a") == ALL
    assert suite.check("a") == suite.check("a") == REMEMBERED
    assert suite.check("b") == ALL
    assert suite.check("a") == ALL
    assert suite.check(None) == ALL


def test_whoever_wants_it_fresh_gets_it(suite, monkeypatch):
    suite.check("a")
    monkeypatch.setenv("CHECK_FRESH", "1")
    assert suite.check("a") == ALL
    monkeypatch.delenv("CHECK_FRESH")
    assert suite.check("a") == REMEMBERED


@pytest.mark.parametrize("name", ["light", "hard"])
def test_a_failure_is_never_remembered_and_ends_what_was(suite, name):
    suite.bad = {name}
    assert suite.check("a")[0] == 1
    suite.bad = set()
    assert suite.check("a") == ALL
    suite.bad = {"light"}
    assert suite.check("a")[0] == 1
    suite.bad = set()
    assert suite.check("a") == ALL


def test_nor_is_what_passed_only_when_it_was_run_again(suite):
    suite.bad = suite.again = {"hard"}
    assert suite.check("a")[0] == 0
    suite.bad = set()
    assert suite.check("a") == ALL


def test_a_memory_that_was_torn_is_none(suite):
    suite.check("a")
    memory = suite.junit.with_suffix(".heavy")
    memory.write_bytes(memory.read_bytes()[:-9])
    assert suite.check("a") == ALL
