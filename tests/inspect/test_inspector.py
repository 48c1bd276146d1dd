# SPDX-License-Identifier: MIT
"""sandbox-inspect on texts that we wrote ourselves, without a sandbox: what it makes of each language.

vectors.json holds signatures and names to be detected; golden/LANGUAGE/NAME.src are sources, each with
the complete answer beside it. After a change that is meant to change them: INSPECT_UPDATE=1.
"""
import json
import os
import pathlib
import socket
import subprocess
import sysconfig

import pytest

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("SBX_BUILD") or HERE.parents[1] / "build").resolve()
PROGRAM = BUILD / "sandbox-inspect"
VECTORS = json.loads((HERE / "vectors.json").read_text())
GOLDEN = sorted((HERE / "golden").glob("*/*.src"))

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="built without grammars (tools/fetch-grammars)")


def run(language, source):
    if isinstance(source, str):
        source = source.encode()
    return subprocess.run([PROGRAM, language, "-"], input=source, capture_output=True, timeout=60, check=False)


def inspect(language, source):
    done = run(language, source)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def only(language, source, name=None):
    found = [f for f in inspect(language, source)["functions"] if name in (None, f["name"])]
    assert len(found) == 1, found
    return found[0]


def parameter(function, name):
    return next(p for p in function["parameters"] if p["name"] == name)


@pytest.mark.parametrize("case", VECTORS["signatures"], ids=lambda c: f"{c['language']}: {c['code'][:40]}")
def test_signature(case):
    found = [f for f in inspect(case["language"], case["code"])["functions"] if f["name"] == case["functionName"]]
    if case["signature"] is None:
        assert found == []
    else:
        assert found[0]["signature"] == case["signature"]
        assert list(found[0]["signature"]["input"]) == list(case["signature"]["input"])


@pytest.mark.parametrize("case", VECTORS["detection"], ids=lambda c: f"{c['language']}: {c['code'][:40]}")
def test_detection(case):
    assert inspect(case["language"], case["code"])["detected"] == case["detected"]


@pytest.mark.parametrize("source", GOLDEN, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_golden(source):
    expected = source.with_suffix(".json")
    found = inspect(source.parent.name, source.read_bytes())
    if os.environ.get("INSPECT_UPDATE"):
        expected.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert found == json.loads(expected.read_text())


# ---- types and literals ----


@pytest.mark.parametrize("annotation, schema", [
    ("int", {"type": "integer"}),
    ("typing.Optional[str]", {"type": ["string", "null"]}),
    ("str | None", {"type": ["string", "null"]}),
    ("list[int]", {"type": "array", "items": {"type": "integer"}}),
    ("List[Dict[str, float]]", {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "number"}}}),
    ("Literal['a', \"b\", 3]", {"enum": ["a", "b", 3]}),
    ("tuple[int, str]", {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
    ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
    ("set[str]", {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    ("Union[int, str]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    ("Annotated[int, 'x']", {"type": "integer"}),
    ("'list[str]'", {"type": "array", "items": {"type": "string"}}),
    ("Any", {}), ("MyClass", {}), ("Callable[[int], str]", {}), ("datetime.date", {"type": "string", "format": "date"}),
    ("[" * 100 + "]" * 100, {}),
])
def test_python_annotations(annotation, schema):
    assert parameter(only("python", f"def f(x: {annotation}): pass"), "x")["schema"] == schema


@pytest.mark.parametrize("language, source, value", [
    ("python", "def f(x=%s): pass", "-12_000"), ("python", "def f(x=%s): pass", "1.5e3"),
    ("python", "def f(x=%s): pass", "{'a': [1, None, (True,)]}"), ("python", "def f(x=%s): pass", r"'\x41\u00e9\n\''"),
    ("javascript", "function f(x = %s) {}", "{a: 1, 'b': [2]}"), ("javascript", "const f = (x = %s) => 1", "`t`"),
    ("javascript", "function f(x = %s) {}", "0xff"), ("javascript", "function f(x = %s) {}", "12n"),
    ("ruby", "def f(x = %s)\nend", "{a: 1, 'b' => nil}"), ("ruby", "def f(x: %s)\nend", r"'a\n#{b}'"),
    ("php", "function f($x = %s) {}", "['a' => 1, 'b' => [true]]"), ("php", "function f($x = %s) {}", r"'$a\n'"),
    ("php", "function f($x = %s) {}", "12345678901234567890123"), ("cpp", "void f(long x = %s) {}", "10'000UL"),
    ("cpp", "void f(const char *x = %s) {}", '"a\\tb"'),
])
def test_literals(language, source, value):
    expected = {
        "-12_000": -12000, "1.5e3": 1500.0, "{'a': [1, None, (True,)]}": {"a": [1, None, [True]]},
        r"'\x41\u00e9\n\''": "Aé\n'", "{a: 1, 'b': [2]}": {"a": 1, "b": [2]}, "`t`": "t", "0xff": 255, "12n": 12,
        "{a: 1, 'b' => nil}": {"a": 1, "b": None}, r"'a\n#{b}'": r"a\n#{b}", "['a' => 1, 'b' => [true]]": {"a": 1, "b": [True]},
        r"'$a\n'": r"$a\n", "12345678901234567890123": 12345678901234567890123, "10'000UL": 10000, '"a\\tb"': "a\tb",
    }[value]
    found = only(language, source % value)["parameters"][0]
    assert found["default"] == value and found["defaultValue"] == expected and not found["required"]


@pytest.mark.parametrize("language, source", [
    ("python", "def f(x=g()): pass"), ("python", "def f(x=f'{a}'): pass"), ("python", "def f(x=1+1): pass"),
    ("javascript", "function f(x = `${a}`) {}"), ("ruby", 'def f(x = "#{a}")\nend'), ("php", 'function f($x = "$a") {}'),
    ("cpp", "void f(int x = 010) {}"), ("cpp", "void f(char x = 'a') {}"), ("python", "def f(x=" + "[" * 40 + "]" * 40 + "): pass"),
])
def test_what_is_not_a_literal_has_no_value(language, source):
    found = only(language, source)["parameters"][0]
    assert "defaultValue" not in found and found["default"] and not found["required"]


# ---- C and C++ ----


@pytest.mark.parametrize("declaration, native", [
    ("int8_t x", ("integer", 8, True)), ("unsigned x", ("integer", 32, False)), ("unsigned long long int x", ("integer", 64, False)),
    ("size_t x", ("integer", 64, False)), ("float x", ("number", 32, True)), ("long double x", ("number", 128, True)),
    ("char x", ("integer", 8, True)), ("enum E x", ("integer", 32, True)), ("signed char x", ("integer", 8, True)),
])
def test_c_numbers(declaration, native):
    found = parameter(only("c", f"void f({declaration}) {{}}"), "x")["native"]
    assert (found["class"], found["bits"], found["signed"]) == native


@pytest.mark.parametrize("language, declaration, kind, text", [
    ("c", "const char *x", "string", "const char *"), ("c", "char x[]", "string", "char *"), ("c", "char *x[]", "array", "char **"),
    ("c", "const double *x", "array", "const double *"), ("c", "int x[3]", "array", "int *"), ("c", "_Bool x", "boolean", "_Bool"),
    ("cpp", "const std::string &x", "string", "const std::string"), ("cpp", "std::vector<std::vector<int>> x", "array", "std::vector<std::vector<int>>"),
    ("cpp", "const std::map<std::string, double>& x", "map", "const std::map<std::string, double>"), ("cpp", "bool x", "boolean", "bool"),
])
def test_c_types(language, declaration, kind, text):
    function = only(language, f"void f({declaration}) {{}}")
    found = parameter(function, "x")["native"]
    assert function["refused"] is None and (found["class"], found["text"]) == (kind, text)


@pytest.mark.parametrize("language, source, words", [
    ("c", "struct P { int a; }; int f(struct P p) { return 0; }", "parameter 'p' is a struct"),
    ("c", "typedef struct { int a; } P; int f(P p) { return 0; }", "parameter 'p' is a struct"),
    ("c", "int f(void *p) { return 0; }", "parameter 'p' is a pointer to void"),
    ("c", "int f(int (*cb)(int)) { return 0; }", "parameter 'cb' is a pointer to a function"),
    ("c", "int f(const char *s, ...) { return 0; }", "takes a variable number of arguments"),
    ("c", "int **f(void) { return 0; }", "returns a pointer to an object or to a pointer"),
    ("c", "int *f(void) { return 0; }", "returns a pointer to a number of values that nobody knows"),
    ("c", "int f(FILE *x) { return 0; }", "parameter 'x' is a type that is not known here"),
    ("c", "#include <complex.h>\ndouble f(double complex z) { return 0; }", "parameter 'complex' is a complex number"),
    ("c", "#include <complex.h>\ndouble complex f(double x) { return 0; }", "returns a complex number"),
    ("c", "double f(float _Complex *z) { return 0; }", "parameter 'z' is a complex number"),
    ("c", "int main(void) { return 0; }", "main is the name of the program that calls"),
    ("cpp", "template <class T> T f(T a) { return a; }", "is a template"),
    ("cpp", "struct S { int f(int a) { return a; } };", "is a member of a class"),
    ("cpp", "int f(std::map<int, int> m) { return 0; }", "parameter 'm' is a map whose keys are not std::string"),
    ("cpp", "int f(std::vector<S> m) { return 0; }", "parameter 'm' is a type that is not known here"),
    ("cpp", "auto f(int a) { return a; }", "returns auto"),
])
def test_refusals_say_why(language, source, words):
    assert only(language, source, None if "main" in source else "f")["refused"] == words


def test_complex_is_a_name_like_any_other():
    function = only("c", "int f(int complex, double complexity) { return complex; }", "f")
    assert function["refused"] is None and [p["name"] for p in function["parameters"]] == ["complex", "complexity"]


@pytest.mark.parametrize("end", [";", " { return 0; }"])
def test_every_default_in_braces_is_found(end):
    source = "int f(std::vector<int> a = {}, std::vector<int> b = {}, std::string c = {}, int d = 3)" + end
    found = only("cpp", source, "f")["parameters"]
    assert [(p["default"], p["required"]) for p in found] == [("{}", False)] * 3 + [("3", False)]


def test_overloads_are_refused():
    found = inspect("cpp", "int f(int a) { return a; }\nint f(double a) { return 0; }\nint g() { return 1; }")["functions"]
    assert ["overloaded" in (f["refused"] or "") for f in found] == [True, True, False]


@pytest.mark.parametrize("source", [
    "int f(int, int, int = 5);\nint f(int, int b = 4, int);\nint f(int a, int b, int c) { return a; }",
    "int f(int a, int b, int c) { return a; }\nint f(int a, int b = 4, int c = 5);",
    "int f(int a, int b, int c = 5);\nint f(int a, int b = 4, int c);",
], ids=["before", "behind", "prototypes only"])
def test_defaults_of_every_declaration_count(source):
    found = [f for f in inspect("cpp", source)["functions"] if not f["shadowed"]]
    assert len(found) == 1
    assert [(p["required"], p.get("defaultValue")) for p in found[0]["parameters"]] == [(True, None), (False, 4), (False, 5)]
    assert found[0]["tool"]["parameters"]["required"] == ["a"]


def test_a_prototype_is_not_an_overload():
    found = inspect("cpp", "int f(int a);\nint f(int a) { return a; }")
    assert [f["shadowed"] for f in found["functions"]] == [True, False]
    assert [f["refused"] for f in found["functions"]] == [None, None] and found["detected"]["name"] == "f"


def test_types_are_followed_to_what_they_mean():
    source = "typedef const char *text;\ntypedef text name_t;\nusing V = std::vector<int>;\nenum E { A };\nint f(name_t a, V b, E c) { return 0; }"
    found = only("cpp", source)
    assert [p["native"]["class"] for p in found["parameters"]] == ["string", "array", "integer"]


@pytest.mark.parametrize("language, lines, lives", [
    ("c", "#if 1;A;#else;B;#endif", "A"), ("c", "#if 0;A;#elif 1;B;#else;A;#endif", "B"),
    ("c", "#ifdef __GNUC__;A;#else;B;#endif", "A"), ("c", "# ifndef _WIN32;A;#else;B;#endif", "A"),
    ("cpp", "#ifdef __cplusplus;A;#else;B;#endif", "A"), ("c", "#ifdef __cplusplus;A;#else;B;#endif", "B"),
    ("c", "#define X;#ifdef X;A;#else;B;#endif", "A"), ("c", "#define X;# undef X;#ifdef X;B;#else;A;#endif", "A"),
    ("c", "#define X 0;#if X;B;#else;A;#endif", "A"), ("c", "#define X 2u;#if (X) && !defined(_WIN32);A;#else;B;#endif", "A"),
    ("c", "#if 0 || HEADER;A;#else;B;#endif", "AB"), ("c", "#if HEADER;#define X;#endif;#ifdef X;A;#else;B;#endif", "AB"),
    ("c", "#if __GNUC__ > 2;A;#else;B;#endif", "AB"),
])
def test_branches_that_are_never_compiled_are_left_out(language, lines, lives):
    source = "\n".join({"A": "double f(int a) { return a; }", "B": "int f(int b) { return b; }"}.get(one, one) for one in lines.split(";"))
    found = inspect(language, source)["functions"]
    assert [f["parameters"][0]["name"] for f in found] == list(lives.lower())
    assert [f["contested"] for f in found] == [False] * (len(found) - 1) + [lives == "AB"]


def test_endless_typedef_ends():
    assert "is" in only("c", "typedef a b; typedef b a; int f(a x) { return 0; }")["refused"]


# ---- hostile text ----


@pytest.mark.parametrize("language", ["python", "javascript", "ruby", "php", "c", "cpp"])
@pytest.mark.parametrize("source", [
    b"(" * 200_000, b"[" * 200_000 + b"]" * 200_000, b"{" * 100_000, b"x" * (1 << 20), b"((" * 50_000 + b"))" * 50_000,
    b"\xff\xfe\x80" * 1000, b"\0" * 1000, b"'" * 100_001, b"f(" * 50_000, b"<?php <?php ?>" * 5000, b"", b"\n" * 100_000,
    b"#" * 100_000, b"def f(" + b"a," * 50_000 + b"): pass", b"int f(" + b"int a," * 20_000 + b"int b) {}", b"class A{" * 20_000,
    b"def " * 20_000, b"if(" * 30_000 + b"1" + b")" * 30_000, b"\\" * 100_000, b"-" * 100_000, b"a?" * 50_000, b"*" * 100_000,
], ids=lambda s: f"{s[:8]!r}-{len(s)}")
def test_hostile_text_is_answered_or_refused(language, source):
    done = run(language, source)
    if done.returncode == 0:
        assert json.loads(done.stdout)["language"]
    else:
        assert done.returncode == 1 and json.loads(done.stderr)["type"] in ("ParseTimeout", "OutOfMemory"), done


def test_invalid_utf8_becomes_the_replacement_character():
    assert only("python", b"def f(a='\xff'): '''\xfe doc'''")["docstring"] == "\ufffd doc"


def test_broken_text_still_shows_what_is_whole():
    found = inspect("python", "def f(a): pass\n\ndef g(:\n")
    assert found["syntaxError"]["line"] == 3 and found["functions"][0]["name"] == "f"


def test_too_long_a_text_is_refused():
    done = run("python", b"#" * ((8 << 20) + 1))
    assert done.returncode == 1 and json.loads(done.stderr)["type"] == "SourceTooLong"


def test_more_functions_than_are_listed():
    found = inspect("python", "".join(f"def f{i}(): pass\n" for i in range(10_001)))
    assert found["truncated"] and len(found["functions"]) == 10_000


def test_unknown_language():
    done = run("cobol", "")
    assert done.returncode == 1 and json.loads(done.stderr)["type"] == "UnsupportedLanguage"


# ---- large sources are parsed in parts ----


def many(count, between=""):
    return "".join(f'def f{i}(a, b={i}):\n    """Number {i}."""\n    return a + b\n\n{between}\n\n' for i in range(count))


def test_parts_make_the_whole():
    found = inspect("python", many(1900))
    assert found["syntaxError"] is None
    assert [f["name"] for f in found["functions"]] == [f"f{i}" for i in range(1900)]
    assert [f["line"] for f in found["functions"]] == [1 + 6 * i for i in range(1900)]
    assert {f["endLine"] - f["line"] for f in found["functions"]} == {2}
    assert [f["parameters"][1]["defaultValue"] for f in found["functions"]] == list(range(1900))


@pytest.mark.parametrize("between", [
    '"""\ndef fake(): pass\n\nclass Fake: pass\n"""', "x = (\ndef_, \n)", "@decorated\n@twice(\n    1,\n)", "if True:\n    pass",
    "x = 'a \\\ndef b'",
])
def test_no_cut_changes_what_is_found(between):
    found = inspect("python", many(1500, between) + "def end(): pass\n")
    assert [f["name"] for f in found["functions"]] == [*(f"f{i}" for i in range(1500)), "end"]
    assert found["syntaxError"] is None


def test_one_long_string_is_no_place_to_cut():
    source = "def first(): pass\n'''\n" + many(1500) + "'''\ndef last(): pass\n"
    found = inspect("python", source)
    assert [f["name"] for f in found["functions"]] == ["first", "last"] and found["syntaxError"] is None
    assert found["functions"][1]["line"] == source.count("\n")


def test_a_mistake_in_one_part_has_its_line():
    source = many(1000) + "def broken(:\n    pass\n" + many(800)
    assert inspect("python", source)["syntaxError"]["line"] == 6001


def alone(source):
    """The answer of a process that has one processor, and so parses in one piece."""
    done = subprocess.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), PROGRAM, "python", "-"], input=source.encode(),
                          capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)


def modules(size):
    """Modules that people wrote, one behind the other."""
    text = ""
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        if len(text) < size:
            text += path.read_text(errors="replace") + "\n"
    return text


STRANGE = {
    "people": lambda: modules(400_000),
    "strings": lambda: many(400) + "x = '''\n" + many(150) + "'''\n" + many(700),
    "strings with quotes": lambda: many(400) + "x = '''\n" + many(150, 'y = """\ndef g(): pass\n"""') + "'''\n" + many(700),
    "the last string is open": lambda: many(1500) + "x = '''\n" + many(150),
    "lines that go on": lambda: many(900, "x = 1 \\"),
    "lines that go on, otherwise": lambda: many(900, "x = 1 \\").replace("\n", "\r\n"),
    "too many": lambda: "".join(f"def f{i}(): pass\n" for i in range(10_100)),
    "a return outside": lambda: many(1500, "return 1"),
    "one of them very long": lambda: many(200) + "def long():\n" + "    x = [1, 2, 3]\n" * 20000 + many(200),
}


@pytest.mark.parametrize("name", STRANGE)
def test_one_piece_has_the_same_in_it(name):
    source = STRANGE[name]()
    assert inspect("python", source) == alone(source)


def test_too_many_are_cut_off_at_the_end():
    found = inspect("python", STRANGE["too many"]())
    assert found["truncated"] and [f["name"] for f in found["functions"]] == [f"f{i}" for i in range(10_000)]


def test_an_answer_that_would_be_too_long_lists_fewer():
    source = "".join(f"def f{i}(a, b, c, d, e, f, g, h): pass\n" for i in range(9000))
    done = run("python", source)
    found = json.loads(done.stdout)
    assert found["truncated"] and found["syntaxError"] is None and len(done.stdout) < 16 << 20
    assert [f["name"] for f in found["functions"]] == [f"f{i}" for i in range(len(found["functions"]))]
    assert len(found["functions"]) > 1000


# ---- frames ----


def talk(data):
    """Runs the program with these bytes on its descriptor 3; what it said there, and its status."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(30)
        command = f'exec "$0" python 3<&{theirs.fileno()}'
        child = subprocess.Popen(["bash", "-c", command, PROGRAM], pass_fds=[theirs.fileno()])
        theirs.close()
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)
        said = b""
        while part := ours.recv(65536):
            said += part
        return said, child.wait(30)


def test_frames_on_descriptor_3():
    code = b"def f(): pass"
    said, status = talk(b"C%08x" % len(code) + code + b"G00000000")
    assert status == 0 and said[:9] == b"R%08x" % (len(said) - 9)
    assert json.loads(said[9:])["functions"][0]["name"] == "f"


@pytest.mark.parametrize("data", [b"C0000000z", b"Z00000000", b"G00000001", b"Cffffffff", b"C00000005abc", b""])
def test_broken_frames_are_refused(data):
    said, status = talk(data)
    assert status == 1 and said[:1] == b"E" and json.loads(said[9:])["type"] in ("ProtocolError", "SourceTooLong")
