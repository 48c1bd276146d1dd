// SPDX-License-Identifier: MIT
// One call of every family, as somebody would write it. Compiled, never run: the types are the test.
import createClient from "openapi-fetch";
import type { components, operations, paths } from "./api";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080", headers: { Authorization: "Bearer x" } });

export async function calls(): Promise<string[]> {
  const said: string[] = [];

  const executed = await client.POST("/execute", { body: {
    language: "python", code: "print(1)", timeout: 5, files: { "a.txt": "x" }, packages: { npm: ["lodash"] },
    webhook: { url: "https://hooks.example.com/done", secret: "s" } } });
  if (executed.error) said.push(executed.error.error_code);
  else if ("stdout" in executed.data) said.push(executed.data.stdout);
  else said.push(executed.data.execution_id);

  const state = await client.GET("/v1/executions/{id}", { params: { path: { id: "x" } } });
  said.push(state.data?.state ?? "", state.data?.result?.stderr ?? "");
  const ended = await client.DELETE("/v1/executions/{id}", { params: { path: { id: "x" } } });
  said.push(String(ended.response.status));

  const workspaces = await client.GET("/v1/workspaces", { params: { query: { limit: "10" } } });
  said.push(...(workspaces.data?.workspaces ?? []).map((w) => w.session_id ?? ""), workspaces.data?.next ?? "");
  const workspace = await client.GET("/v1/workspaces/{id}", { params: { path: { id: "s1" } } });
  said.push(String(workspace.data?.bytes ?? 0), String(workspace.data?.in_use));

  const called = await client.POST("/v1/functions/call", {
    body: {
      language: "python", code: "def f(a): return a", functionName: "f", args: [1],
      packages: "tools", webhook: "https://hooks.example.com/done",
      options: { files: { "a.txt": "x", "b.bin": { base64: "AAE=" } }, reporting: { includeContents: false },
                 mount: { dirs: { "/data": "/srv" }, sync: { mode: "batch", rules: [{ pattern: "**", state: "skip" }] } } },
    },
  });
  said.push(called.data?.status ?? "");

  const session = await client.POST("/v1/sessions", { body: { language: "python", code: "n = 1", idleTimeout: 60, packages: { python: ["requests"] } } });
  const id = session.data?.id ?? "";
  await client.POST("/v1/sessions/{id}/call", { params: { path: { id } }, body: { functionName: "f" } });
  await client.POST("/v1/sessions/{id}/reset", { params: { path: { id } }, body: { level: "hard" } });
  const sessions = await client.GET("/v1/sessions");
  said.push(...(sessions.data?.sessions ?? []).map((s) => s.id));

  const run = await client.POST("/run", { body: { cmd: "ls", env: { A: "1" } } });
  said.push(run.data?.stdout ?? run.error ?? "");

  const sandbox = await client.POST("/v1/sandboxes", { body: { limits: { memory_mb: 256 }, timeout: 60 } });
  const at = { path: { id: sandbox.data?.id ?? "" } };
  const started = await client.POST("/v1/sandboxes/{id}/start_process", { params: at, body: { cmd: "sleep 1" } });
  said.push(started.data?.id ?? started.error?.error_detail ?? "");
  const processes = await client.GET("/v1/sandboxes/{id}/list_processes", { params: at });
  said.push(...(processes.data?.processes ?? []).map((p) => p.status));
  await client.DELETE("/v1/sandboxes/{id}/files/{path}", {
    params: { path: { id: "x", path: "a" }, query: { recursive: "true" } },
  });
  said.push(...await processes_of("x"), ...await cells_of("x"), ...await files_of("x"));
  const paused = await client.POST("/v1/sandboxes/{id}/pause", { params: at });
  await client.POST("/v1/sandboxes/{id}/resume", { params: at });
  const later = await client.POST("/v1/sandboxes/{id}/lifetime", { params: at, body: { lifetime: 60 } });
  said.push(paused.data?.state ?? "", later.data?.ends_at ?? "");
  const page = await client.GET("/v1/sandboxes/{id}/ports/{port}/{path}", {
    params: { path: { id: "x", port: "8000", path: "index.html" } }, parseAs: "text" });
  said.push(page.data ?? "");
  await client.DELETE("/v1/sandboxes/{id}", { params: at });

  const packages = await client.POST("/v1/packages", { body: { name: "tools", python: ["requests"], npm: ["lodash"] } });
  said.push(packages.data?.state ?? packages.error?.error_detail ?? "");
  const sets = await client.GET("/v1/packages");
  said.push(...(sets.data?.packages ?? []).map((p) => p.id));
  await client.DELETE("/v1/packages/{id}", { params: { path: { id: "tools" } } });

  const asked = await client.POST("/mcp", { body: { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} } });
  said.push(asked.data?.jsonrpc ?? "");
  await client.DELETE("/mcp", { params: { header: { "Mcp-Session-Id": "x" } } });

  const health = await client.GET("/health");
  said.push(health.data?.status ?? "");
  return said;
}

async function processes_of(id: string): Promise<string[]> {
  const made = await client.POST("/v1/sandboxes/{id}/processes", {
    params: { path: { id } }, body: { command: "cat", stdin: true, tag: "t", terminal: { columns: 80, rows: 24 } } });
  const one = { path: { id, process: "t" } };
  await client.POST("/v1/sandboxes/{id}/processes/{process}/signal", { params: one, body: { signal: "SIGTERM", to: "group" } });
  await client.POST("/v1/sandboxes/{id}/processes/{process}/size", { params: one, body: { columns: 120, rows: 40 } });
  await client.POST("/v1/sandboxes/{id}/processes/{process}/stdin", {
    params: { ...one, query: { close: "true" } }, body: "typed", bodySerializer: (text) => text });
  await client.DELETE("/v1/sandboxes/{id}/processes/{process}/stdin", { params: one });
  const output = await client.GET("/v1/sandboxes/{id}/processes/{process}/output", {
    params: { ...one, query: { from: "0" } }, parseAs: "stream" });
  const all = await client.GET("/v1/sandboxes/{id}/processes", { params: { path: { id } } });
  await client.DELETE("/v1/sandboxes/{id}/processes/{process}", { params: one });
  await client.GET("/v1/sandboxes/{id}/terminals", { params: { path: { id }, query: { columns: "80" } } });
  return [made.data?.tag ?? "", String(output.response.ok), ...(all.data?.processes ?? []).map((p) => p.status)];
}

async function cells_of(id: string): Promise<string[]> {
  const context = await client.POST("/v1/sandboxes/{id}/contexts", { params: { path: { id } }, body: { language: "python" } });
  const cell = await client.POST("/v1/sandboxes/{id}/cells", {
    params: { path: { id } }, body: { code: "1 + 1", context: context.data?.id ?? "" } });
  const one = { path: { id, context: context.data?.id ?? "" } };
  await client.POST("/v1/sandboxes/{id}/contexts/{context}/interrupt", { params: one });
  const again = await client.POST("/v1/sandboxes/{id}/contexts/{context}/restart", { params: one });
  await client.DELETE("/v1/sandboxes/{id}/contexts/{context}", { params: one });
  return [cell.data?.status ?? "", ...(cell.data?.results ?? []).map((r) => Object.keys(r.data ?? {}).join()), again.data?.state ?? ""];
}

async function files_of(id: string): Promise<string[]> {
  const at = { path: { id } };
  const stat = await client.POST("/v1/sandboxes/{id}/files/stat", { params: at, body: { path: "a" } });
  const there = await client.POST("/v1/sandboxes/{id}/files/exists", { params: at, body: { path: "a" } });
  const list = await client.POST("/v1/sandboxes/{id}/files/list", { params: at, body: { path: "." } });
  await client.POST("/v1/sandboxes/{id}/files/move", { params: at, body: { from: "a", to: "b" } });
  await client.POST("/v1/sandboxes/{id}/files/copy", { params: at, body: { from: "b", to: "c" } });
  const url = await client.POST("/v1/sandboxes/{id}/files/sign", { params: at, body: { path: "c" } });
  await client.POST("/v1/sandboxes/{id}/files/watch", { params: at, body: { path: "." }, parseAs: "stream" });
  const put = await client.PUT("/v1/sandboxes/{id}/files/{path}", {
    params: { path: { id, path: "workspace/a" } }, body: "x", bodySerializer: (bytes) => bytes });
  const form = await client.POST("/v1/sandboxes/{id}/files", {
    params: { ...at, query: { path: "in" } }, body: { file: ["x"] }, bodySerializer: () => new FormData() });
  return [stat.data?.type ?? "", String(there.data?.exists), ...(list.data?.entries ?? []).map((e) => e.path),
          url.data?.url ?? "", put.data?.path ?? "", ...(form.data?.files ?? []).map((f) => f.name)];
}

// What must not compile: wrong types, missing members, unknown paths.
export async function mistakes(): Promise<void> {
  // @ts-expect-error
  await client.POST("/execute", { body: { language: "python", code: "", timeout: [] } });
  // @ts-expect-error
  await client.POST("/v1/sandboxes/{id}/run", { params: { path: { id: "x" } }, body: { command: "ls" } });
  // @ts-expect-error
  await client.POST("/bind_port", { body: { port: 8080 } });
  // @ts-expect-error
  await client.POST("/execute", { body: { language: "python", code: "", webhook: { secret: "s" } } });
  // @ts-expect-error
  await client.POST("/v1/sandboxes/{id}/processes", { params: { path: { id: "x" } }, body: { commands: "ls" } });
  // @ts-expect-error
  await client.POST("/v1/sandboxes/{id}/cells", { params: { path: { id: "x" } }, body: { language: "bash" } });
  // @ts-expect-error
  await client.GET("/nowhere");
}

export type Created = operations["postSandboxes"]["responses"]["201"];
export type Result = components["schemas"]["FunctionResult"];
