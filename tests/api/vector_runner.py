# SPDX-License-Identifier: MIT
"""Turns a call vector (tests/api/vectors) into a request and checks what came back."""
import base64
import copy
import json
import pathlib

DIRECTORY = pathlib.Path(__file__).parent / "vectors"


def load(name):
    return json.loads((DIRECTORY / name).read_text(encoding="utf-8"))


def nested(n):
    value = 0
    for _ in range(n):
        value = [value]
    return value


MACROS = {"$repeat": lambda v: v[0] * v[1], "$seq": lambda n: list(range(n)), "$nest": nested}


def expand(value):
    """Macros keep the vectors readable: {"$repeat": ["x", 3]} is "xxx"."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in MACROS:
            name, given = next(iter(value.items()))
            return MACROS[name](given)
        return {k: expand(v) for k, v in value.items()}
    if isinstance(value, list):
        return [expand(v) for v in value]
    return value


def request_of(vector, mode=None, host=None):
    """The body of POST /v1/functions/call. host: the directory that stands for the mount."""
    body = {k: expand(vector[k]) for k in
            ("language", "code", "functionName", "args", "kwargs", "argsMode", "timeout", "schema")
            if k in vector}
    if mode:
        body["argsMode"] = mode
    options = {k: expand(vector[k]) for k in ("files", "workdir", "permissions", "reporting")
               if k in vector}
    if "mount" in vector:
        mount = copy.deepcopy({k: v for k, v in vector["mount"].items() if k != "hostFiles"})
        mount["dirs"] = {inside: str((pathlib.Path(host) / outside).resolve())
                         for inside, outside in mount["dirs"].items()}
        mount["permissions"] = options.pop("permissions", {})
        options["mount"] = expand(mount)
    if options:
        body["options"] = options
    return body


def seed_host(vector, host):
    for name, content in vector.get("mount", {}).get("hostFiles", {}).items():
        path = pathlib.Path(host) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = expand(content)
        if isinstance(content, dict) and "symlink" in content:
            path.symlink_to(content["symlink"])
        elif isinstance(content, dict) and "dir" in content:
            path.mkdir(exist_ok=True)
        elif isinstance(content, dict):
            path.write_bytes(base64.b64decode(content["base64"]))
        else:
            path.write_text(content)


def listed(value):
    return value if isinstance(value, list) else [value]


def content_of(change):
    value = change.get("content")
    return value if not isinstance(value, dict) else base64.b64decode(value["base64"])


def as_bytes(value):
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return value.encode() if isinstance(value, str) else value


def check_files(result, expected):
    problems = []
    files = result.get("files") or {}
    for kind in ("created", "modified", "deleted"):
        got = {c["path"]: c for c in files.get(kind, [])}
        want = expected.get(kind)
        if isinstance(want, list):
            problems += [f"{kind} lacks {p}" for p in want if p not in got]
        elif isinstance(want, dict):
            for path, content in want.items():
                if path not in got:
                    problems.append(f"{kind} lacks {path}")
                elif content is not None and as_bytes(content_of(got[path])) != as_bytes(content):
                    problems.append(f"{kind} {path}: {got[path].get('content')!r}")
        if want is not None and expected.get("exact") and set(got) != set(want):
            problems.append(f"{kind} is {sorted(got)}")
        not_kind = "not" + kind.capitalize()
        problems += [f"{kind} has {p}" for p in expected.get(not_kind, []) if p in got]
    denied = [(d["path"], d["operation"]) for d in files.get("denied", [])]
    for d in expected.get("denied", []):
        if (d["path"], d["operation"]) not in denied:
            problems.append(f"denied lacks {d}: {denied}")
    return problems


def check_host(expected, host):
    problems = []
    for name, content in expected.items():
        path = pathlib.Path(host) / name
        if content is None:
            if path.exists():
                problems.append(f"{name} exists on the host")
        elif not path.exists() or path.read_bytes() != as_bytes(content):
            problems.append(f"{name} on the host: "
                            f"{path.read_bytes()[:80] if path.exists() else 'missing'}")
    return problems


def same(got, want):
    """Equal as JSON: true is not 1."""
    if isinstance(got, bool) or isinstance(want, bool):
        return got is want
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(
            same(got[k], want[k]) for k in want)
    return got == want


def check(result, expect, host=None):
    """All that is wrong, as words; [] when the vector is satisfied."""
    expect = expand(expect)
    if "anyOf" in expect:
        all_problems = [check(result, choice, host) for choice in expect["anyOf"]]
        return [] if [] in all_problems else all_problems
    problems = []
    error = result.get("error") or {}
    value = result.get("result")

    def want(ok, words):
        if not ok:
            problems.append(words)

    if "status" in expect:
        want(result["status"] in listed(expect["status"]), f"status {result['status']}")
    if "result" in expect:
        want("result" in result and same(value, expect["result"]), f"result {str(value)[:300]!r}")
    if "resultAnyOf" in expect:
        want(any(same(value, v) for v in expect["resultAnyOf"]), f"result {value!r}")
    if "resultLength" in expect:
        want(len(value) == expect["resultLength"], f"length {len(value)}")
    if "resultContains" in expect:
        text = json.dumps(value, ensure_ascii=False)
        want(all(v in text for v in listed(expect["resultContains"])), f"result {text[:300]}")
    if "errorType" in expect:
        want(error.get("type") in listed(expect["errorType"]), f"error.type {error.get('type')}")
    for field, where in (("messageContains", error.get("message", "")),
                         ("stackContains", error.get("stack", "")),
                         ("stdoutContains", result["stdout"]),
                         ("stderrContains", result["stderr"])):
        for text in listed(expect.get(field, [])):
            want(text in where, f"{field} {text!r}: {where[:300]!r}")
    for text in listed(expect.get("stdoutNotContains", [])):
        want(text not in result["stdout"], f"stdout contains {text!r}")
    if "stdoutEquals" in expect:
        want(result["stdout"] == expect["stdoutEquals"], f"stdout {result['stdout']!r}")
    if "stdoutMinLength" in expect:
        want(len(result["stdout"]) >= expect["stdoutMinLength"], "stdout is too short")
    if "exitCode" in expect:
        want(result["exitCode"] in listed(expect["exitCode"]), f"exitCode {result['exitCode']}")
    if "signatureSource" in expect:
        want(result["meta"]["signatureSource"] == expect["signatureSource"],
             f"signatureSource {result['meta']['signatureSource']}")
    if expect.get("filesAbsent"):
        want("files" not in result, "files are there")
    if expect.get("noContents"):
        changes = [c for k in ("created", "modified", "deleted") for c in result["files"][k]]
        want(not any("content" in c for c in changes), "contents are there")
    if "filesChanged" in expect:
        problems += check_files(result, expect["filesChanged"])
    if "hostFiles" in expect:
        problems += check_host(expect["hostFiles"], host)
    return problems
