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
  await client.DELETE("/v1/sandboxes/{id}", { params: at });

  const health = await client.GET("/health");
  said.push(health.data?.status ?? "");
  return said;
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
  await client.GET("/nowhere");
}

export type Created = operations["postSandboxes"]["responses"]["201"];
export type Result = components["schemas"]["FunctionResult"];
