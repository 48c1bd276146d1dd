# SPDX-License-Identifier: MIT
"""The JavaScript client against a real daemon, in Node.js: its README, streams, errors, its package."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

import harness
from test_client_python import BUSY, GOOD, Scripted

TOP = pathlib.Path(__file__).resolve().parents[2]
CLIENT = TOP / "clients" / "javascript"
TSC = TOP / "build-deps" / "client" / "node_modules" / ".bin" / "tsc"


def blocks(path):
    return re.findall(r"^```js\n(.*?)^```", path.read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory in which the package is installed, and its README's examples, type-checked and in the language of Node.js 20."""
    harness.need(shutil.which("node") and TSC.exists(), "node, and the compiler of tools/fetch-npm client")
    place = tmp_path_factory.mktemp("javascript")
    (place / "node_modules").mkdir()
    shutil.copytree(CLIENT, place / "node_modules" / "sandbox-executor")
    (place / "package.json").write_text('{"type": "module"}')
    examples = blocks(CLIENT / "README.md")
    for number, text in enumerate(examples):
        (place / f"example{number}.ts").write_text(text)
    options = {"strict": True, "target": "es2022", "lib": ["es2022", "dom", "dom.iterable", "dom.asynciterable", "esnext.disposable"],
               "module": "nodenext", "moduleResolution": "nodenext", "types": []}
    (place / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": [f"example{n}.ts" for n in range(len(examples))]}))
    made = subprocess.run([TSC, "-p", place], capture_output=True, text=True, check=False, timeout=10 * harness.DEADLINE)
    assert made.returncode == 0, made.stdout
    return place


def node(daemon, place, file, **env):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "SANDBOX_URL": f"http://127.0.0.1:{daemon.port}",
           "SANDBOX_SECRET": daemon.secret, **env}
    ran = subprocess.run(["node", "--no-warnings", "--experimental-websocket", file], cwd=place, env=env, capture_output=True, text=True,
                         check=False, timeout=2 * harness.HTTP_TIMEOUT)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    return ran.stdout


def script(daemon, place, text, **env):
    file = place / "script.mjs"
    file.write_text('import assert from "node:assert/strict";\nimport * as sbx from "sandbox-executor";\nconst client = new sbx.Client();\n' + text)
    return node(daemon, place, file, **env)


@pytest.mark.parametrize("number", range(len(blocks(CLIENT / "README.md"))))
def test_an_example_of_the_readme_does_what_it_shows(daemon, place, number):
    node(daemon, place, place / f"example{number}.js")


def test_leaving_a_stream_ends_the_program(daemon, place):
    mark = harness.marker()
    script(daemon, place, f"""
for await (const {{ event, data }} of client.executeStream("shell", "echo first; exec -a {mark} sleep 600")) {{
  assert.deepEqual([event, data.data], ["stdout", "first\\n"]);
  break;
}}""")
    harness.wait_until(lambda: not harness.processes_with(mark), "it has ended")


def test_files_terminals_and_cells(daemon, place):
    script(daemon, place, """
const s = await client.sandbox({ limits: { memory_mb: 256 } });
try {
  const big = new Uint8Array(3_000_000).fill(7);
  const stream = new ReadableStream({ start(c) { c.enqueue(big.subarray(0, 5)); c.enqueue(big.subarray(5)); c.close(); } });
  assert.equal((await s.files.write("big.bin", stream)).size, big.length);
  assert.deepEqual(await s.files.read("big.bin"), big);
  assert.deepEqual((await s.files.list(".")).map((e) => e.name), ["big.bin"]);
  const tar = await (await s.files.readTar("/workspace")).arrayBuffer();
  await s.files.writeTar("/workspace/again", new Uint8Array(tar));
  assert.equal((await s.files.stat("again/big.bin")).size, big.length);
  const watch = s.files.watch(".");
  assert.equal((await watch.next()).value.event, "ready");
  await s.files.write("new.txt", "x");
  assert.equal((await watch.next()).value.data.name, "new.txt");
  await watch.return();
  const names = [];
  for await (const { event } of s.runCodeStream("print('seen')")) names.push(event);
  assert.ok(names.includes("stdout") && names.at(-1) === "end");
  const t = await s.terminal({ command: "exec env PS1='> ' bash --norc --noprofile -i", columns: 77, rows: 11 });
  t.send("stty size; exit 3\\r");
  let shown = "";
  for await (const data of t) shown += new TextDecoder().decode(data);
  assert.match(shown, /11 77/);
  assert.equal(t.process.exit_code, 3);
} finally {
  await s.remove();
}""")


def test_errors_are_classes_with_a_hint(daemon, place):
    script(daemon, place, """
await assert.rejects(client.execute("python", "1", { mode: "nonsense" }), (e) => e instanceof sbx.InvalidRequest && /mode/.test(e.message) && e.requestId !== "");
await assert.rejects(new sbx.Client({ secret: "wrong" }).capabilities(), sbx.Unauthorized);
await assert.rejects(new sbx.Client({ url: "http://127.0.0.1:9" }).health(), (e) => e instanceof sbx.ConnectionFailed && /SANDBOX_URL/.test(e.hint));
await assert.rejects(client.sandbox({ nonsense: 1 }), sbx.SandboxError);
""")


def test_only_what_cannot_have_begun_is_sent_twice(daemon, place):
    refused, broken, read = Scripted(BUSY, BUSY, GOOD), Scripted(b"", GOOD), Scripted(b"", GOOD)
    script(daemon, place, f"""
assert.equal((await new sbx.Client({{ url: "{refused.url}" }}).execute("python", "1")).status, "ok");
await assert.rejects(new sbx.Client({{ url: "{broken.url}" }}).execute("python", "1"), sbx.ConnectionFailed);
assert.equal((await new sbx.Client({{ url: "{read.url}" }}).health()).status, "ok");
""")
    assert (len(refused.asked), len(broken.asked), len(read.asked)) == (3, 1, 2)


def test_the_package_has_what_it_needs(tmp_path):
    harness.need(shutil.which("npm"), "npm")
    packed = subprocess.run(["npm", "pack", "--silent", "--offline", "--pack-destination", tmp_path], cwd=CLIENT, capture_output=True,
                            text=True, check=False, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, timeout=harness.HTTP_TIMEOUT)
    assert packed.returncode == 0, packed.stderr
    with tarfile.open(tmp_path / packed.stdout.strip()) as tar:
        assert sorted(tar.getnames()) == sorted(f"package/{n}" for n in ("README.md", "index.js", "index.d.ts", "types.d.ts", "package.json"))
