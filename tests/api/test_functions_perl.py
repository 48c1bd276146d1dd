# SPDX-License-Identifier: MIT
"""Perl, the language that was added last: what its wrapper does with arguments, results and failures."""
import pytest

from test_functions_call import call, error, value

PERL = "perl"
MODES = ("inline", "stdin", "file")
VALUES = [None, True, False, 0, -1, 1.5, 1e300, 9223372036854775807, -9223372036854775808, "", "a\"b\\c$x@y#{1}%d",
          "\u00e9\u20ac\U0001f600", "\0\x01\x1f\x7f\n\t\b", [], {}, [[], {}], [None, [True]],
          {"a": {"b": [1, None, {"c": True}]}, "__proto__": 1, "\u00e9": "\u00fc", "": 0}, "x" * 100000,
          list(range(2000))]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("given", VALUES, ids=range(len(VALUES)))
def test_values_survive(daemon, mode, given):
    got = value(daemon, PERL, "sub f { return $_[0] }", args=[given], argsMode=mode)
    assert got == given and type(got) is type(given)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_expanded(daemon, mode):
    given = "@{[`id`]} ${\\ 1} $0 \\x41 @ARGV"
    assert value(daemon, PERL, "sub f { return $_[0] }", args=[given], argsMode=mode) == given


CALLS = [
    ("sub f { my ($x, $y) = @_; return $x + $y }", [1, 2], 3),
    ("use v5.36; sub f($x, $y = 2, @r) { return [$x, $y, @r] }", {"x": 1}, [1, 2]),
    ("use v5.36; sub f($x, $y = 2, $z = 3) { return [$x, $y, $z] }", {"y": 5, "x": 9}, [9, 5, 3]),
    ("use v5.36; sub f($x, %o) { return [$x, \\%o] }", {"x": 1, "q": 5}, [1, {"q": 5}]),
    ("sub f { my %o = @_; return \\%o }", {"a": 1, "b": [2]}, {"a": 1, "b": [2]}),
    ("sub f { return (1, 2, 3) }", [], [1, 2, 3]),
    ("sub f { return }", [], None),
    ("my $k = 5;\nsub f { return $k }", [], 5),
    ("sub f { return [0.1 + 0.2, 1/3, '5', 5, 1 == 1, 1 == 2, \\1, \\0] }", [],
     [0.30000000000000004, 0.3333333333333333, "5", 5, True, False, True, False]),
    ("sub f { return bless({a => 1, _b => 2}, 'P') }", [], {"a": 1}),
    ("package P; sub TO_JSON { {j => 1} } package main; sub f { return [bless([], 'P')] }", [], [{"j": 1}]),
    ("use JSON::PP; sub f { return decode_json('[true, 1.5]') }", [], [True, 1.5]),
    ("sub f { return 'é' . length('é') }", [], "\u00e91"),
    ("use strict; use warnings;\nuse List::Util qw(sum);\nsub f { return sum(@_) }", [1, 2, 3], 6),
    ("sub f { return scalar(<STDIN>) }", [], None),
]


@pytest.mark.parametrize("code,args,expected", CALLS, ids=range(len(CALLS)))
def test_calls(daemon, code, args, expected):
    got = call(daemon, PERL, code, args=args)
    assert got["status"] == "success" and got["result"] == expected, got
    assert got["stderr"] == "" and got["meta"]["language"] == "perl"


ERRORS = [
    ("sub f {\n  die 'bad';\n}", [], "Error", "bad at /workspace/user_code.pl line 2."),
    ("sub f {\n  g();\n}\nsub g {\n  die {code => 1};\n}", [], "HASH", "reference to HASH"),
    ("package E; sub new { bless {m => $_[1]}, $_[0] } sub message { $_[0]{m} }\npackage main;\nsub f { die E->new('oops') }",
     [], "E", "oops"),
    ("sub f { my $x = ;\n}", [], "SyntaxError", "user_code.pl line 1"),
    ("use strict;\nsub f { $zz = 1 }", [], "SyntaxError", "user_code.pl line 2"),
    ("use No::Such::Module;\nsub f { 1 }", [], "SyntaxError", "No/Such/Module.pm"),
    ("sub f { exit 0 }", [], "NoResult", "exit code 0"),
    ("sub g { 1 }", [], "NameError", "'f' not found"),
    ("sub f { my $x = {}; $x->{x} = $x; return $x }", [], "Error", "contains itself"),
    ("sub f { return sub { 1 } }", [], "Error", "CODE is not JSON"),
    ("sub f { return 9**9**9 }", [], "Error", "infinities"),
    ("sub f { return $_[0] }", [12345678901234567890123], "TypeError", "12345678901234567890123"),
    ("use v5.36; sub f($x) { return $x }", [], "Error", "Too few arguments"),
    ("use v5.36; sub f($x, $y = 2, $z = 3) { return 1 }", {"x": 1, "z": 5}, "Error", "'$y'"),
    ("sub f { return 'x' x 5000000 }", [], "Error", "5000002 bytes"),
]


@pytest.mark.parametrize("code,args,kind,words", ERRORS, ids=range(len(ERRORS)))
def test_errors(daemon, code, args, kind, words):
    got = error(daemon, PERL, code, args=args)
    assert got["type"] == kind and words in got["message"], got


def test_stacks_show_the_programs_own_lines(daemon):
    got = error(daemon, PERL, "sub f {\n  g();\n}\nsub g {\n  die 'x';\n}")
    assert "main::g called at /workspace/user_code.pl line 2" in got["stack"] and "-e" not in got["stack"]


def test_a_crash_and_a_timeout(daemon):
    assert "SIGSEGV" in call(daemon, PERL, "sub f { kill 'SEGV', $$; sleep 9 }")["error"]["message"]
    late = call(daemon, PERL, "$| = 1; sub f { print \"h\u00e9\\n\"; 1 while 1 }", timeout=1)
    assert late["status"] == "timeout" and late["stdout"] == "h\u00e9\n"


@pytest.mark.parametrize("mode", MODES)
def test_detection_and_bodies(daemon, mode):
    assert value(daemon, PERL, "sub only { return 7 }", function=None, argsMode=mode) == 7
    assert value(daemon, PERL, "sub _one { 1 }\nsub two { 2 }", function=None, argsMode=mode) == 2
    assert value(daemon, PERL, "use List::Util qw(sum);\nsub total { sum(@_) }", function=None, args=[1, 2]) == 3
    assert value(daemon, PERL, "return $_[0] * 2;", function=None, args=[21], argsMode=mode) == 42
    got = error(daemon, PERL, "sub one { 1 }\nsub two { 2 }", function=None)
    assert got["type"] == "DetectionError" and "[one, two]" in got["message"]
    assert value(daemon, "pl", "package A; sub m { return $_[0] + 1 }", function="A.m", args=[4]) == 5


def test_a_schema_gives_positions_names(daemon):
    schema = {"input": [{"name": "x", "type": "number"}, {"name": "y", "default": 5}], "strict": True}
    code = "sub f { my ($x, $y) = @_; return [$x, $y] }"
    assert value(daemon, PERL, code, args={"x": 1}, schema=schema) == [1, 5]
    assert "'x'" in error(daemon, PERL, code, args={"x": "no"}, schema=schema)["message"]


def test_files_and_their_changes(daemon):
    code = ("use Own; sub f { open(my $h, '>', 'made') or die; print $h Own::text(); return -e 'Own.pm' ? 1 : 0 }")
    result = call(daemon, PERL, code, options={"files": {"Own.pm": "package Own; sub text { 'own' } 1;"}})
    assert result["result"] == 1 and [(c["path"], c["content"]) for c in result["files"]["created"]] == [
        ("/workspace/made", "own")], result
