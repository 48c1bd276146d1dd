// SPDX-License-Identifier: MIT
/**
 * Client of Sandbox Executor for Node.js, Deno, Bun and browsers: `fetch`, `WebSocket` and nothing else.
 *
 * What was refused before it began (503 with Retry-After) is asked for again, and so is what only reads when its
 * connection breaks; nothing else is ever sent twice. index.d.ts is made from this file by tools/make-clients.
 */

/** @import * as T from "./types.d.ts" */
/** @typedef {string | Uint8Array | Blob | ReadableStream<Uint8Array>} Contents */
/** @typedef {{[name: string]: string | Uint8Array}} FilesGiven */
/** @typedef {Omit<T.ExecuteRequest, "language" | "code" | "files"> & {files?: FilesGiven, signal?: AbortSignal}} ExecuteOptions */
/** @typedef {Omit<T.FunctionCall, "language" | "code" | "functionName" | "args">} CallOptions */
/** @typedef {Omit<T.SessionCreate, "language" | "code">} SessionOptions */
/** @typedef {T.SandboxCreate & {client?: Client}} SandboxOptions */
/** @typedef {Omit<T.Cell, "code" | "language">} CellOptions */
/** @typedef {{event: string, id: string, data: any}} Event */

const BUSY_RETRIES = 5;
const BUSY_MS = 5000; // as long as one wait may be

/** @returns {{[name: string]: string | undefined}} */
function environment() {
  return /** @type {any} */ (globalThis).process?.env ?? {};
}

// ---- errors ----

/** Every error of this package. `hint` says what may help. A program that fails is no error: that is a result. */
export class SandboxError extends Error {
  /** @param {string} message @param {{hint?: string, status?: number, code?: string, requestId?: string, details?: unknown, retryAfter?: number, cause?: unknown}} [about] */
  constructor(message, about = {}) {
    super(about.hint ? `${message} (${about.hint})` : message, about.cause === undefined ? undefined : { cause: about.cause });
    this.name = new.target.name;
    this.hint = about.hint ?? "";
    this.status = about.status ?? 0;
    this.code = about.code ?? "";
    this.requestId = about.requestId ?? "";
    this.details = about.details;
    this.retryAfter = about.retryAfter ?? 0;
  }
}
/** Nobody answers there, or the connection broke. */
export class ConnectionFailed extends SandboxError {}
/** The request makes no sense to the daemon: 400, 405, 413, 422 and the like. */
export class InvalidRequest extends SandboxError {}
/** 401: the secret is missing or wrong. */
export class Unauthorized extends SandboxError {}
/** 403: the operator does not allow it, or this host cannot do it. */
export class Forbidden extends SandboxError {}
/** 404: there is no such thing (any more). */
export class NotFound extends SandboxError {}
/** 409: not in this state. */
export class Conflict extends SandboxError {}
/** 429 or 503: a limit is reached; `retryAfter` seconds may help. */
export class Busy extends SandboxError {}
/** The daemon or its host failed: 500 and above. */
export class ServerFailed extends SandboxError {}
/** A function that was called has failed; `type` is the program's own. */
export class FunctionFailed extends SandboxError {
  /** @param {T.FunctionResult} result */
  constructor(result) {
    const error = /** @type {any} */ (result.error) ?? {};
    super(`${error.type ?? result.status}: ${error.message ?? ""}`);
    this.type = /** @type {string} */ (error.type ?? result.status);
    this.result = result;
  }
}

/** @type {{[status: number]: typeof SandboxError}} */
const BY_STATUS = { 401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 429: Busy, 503: Busy };

/** @param {Response} answer */
async function refusal(answer) {
  const text = await answer.text();
  /** @type {any} */
  let said = {};
  try {
    said = JSON.parse(text);
  } catch {
    // plain text: that is the message
  }
  if (said?.error && typeof said.error === "object") said = said.error;
  /** @param {string[]} names */
  const first = (...names) => names.map((n) => said?.[n]).find((v) => typeof v === "string" && v) ?? "";
  const kind = BY_STATUS[answer.status] ?? (answer.status >= 500 ? ServerFailed : InvalidRequest);
  return new kind(first("error_detail", "message", "error", "description", "detail") || text.trim() || `status ${answer.status}`, {
    hint: first("hint", "solution"),
    status: answer.status,
    code: first("error_code", "code"),
    requestId: first("request_id") || (answer.headers.get("x-request-id") ?? ""),
    details: said?.detail,
    retryAfter: Number(answer.headers.get("retry-after")) || 0,
  });
}

// ---- bytes ----

/** @param {Uint8Array} bytes */
function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

/** @param {string} text */
function fromBase64(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/** Texts as they are, bytes in base64. @param {FilesGiven | undefined} files */
function writeFiles(files) {
  if (!files) return undefined;
  return Object.fromEntries(Object.entries(files).map(([path, data]) => [path, typeof data === "string" ? data : { base64: toBase64(data) }]));
}

/** The events of an answer; leaving early closes it, which ends what was asked for.
 * @param {Response} answer @returns {AsyncGenerator<Event, void, void>} */
async function* readEvents(answer) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let event = "message";
  let id = "";
  /** @type {string[]} */
  let data = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
      rest = /** @type {string} */ (lines.pop());
      for (const raw of lines) {
        const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
        if (line === "") {
          if (data.length) yield { event, id, data: JSON.parse(data.join("\n")) };
          event = "message";
          data = [];
          continue;
        }
        const at = line.indexOf(":");
        const field = at < 0 ? line : line.slice(0, at);
        const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
        if (field === "event") event = value;
        else if (field === "id") id = value;
        else if (field === "data") data.push(value);
      }
      if (done) return;
    }
  } catch (cause) {
    throw cause instanceof TypeError ? new ConnectionFailed("the answer broke off", { cause }) : cause;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

const part = encodeURIComponent;
/** @param {string} path */
const filePath = (path) => (path.startsWith("/") ? path : `/workspace/${path}`).split("/").map(part).join("/");
/** @param {{[name: string]: unknown} | undefined} values */
function query(values) {
  const given = Object.entries(values ?? {}).filter(([, v]) => v !== undefined && v !== null);
  return given.length ? "?" + new URLSearchParams(given.map(([k, v]) => [k, String(v)])) : "";
}

// ---- the daemon ----

/** One daemon. Without options: $SANDBOX_URL (or port 8080 of this host) and $SANDBOX_SECRET; in a page, its own origin. */
export class Client {
  /** @param {{url?: string, secret?: string, fetch?: typeof fetch, WebSocket?: typeof WebSocket}} [options] */
  constructor(options = {}) {
    const env = environment();
    const page = /** @type {any} */ (globalThis).document && globalThis.location?.origin;
    /** @type {string} */
    this.url = (options.url ?? env.SANDBOX_URL ?? page ?? `http://127.0.0.1:${env.EXECUTOR_PORT ?? 8080}`).replace(/\/+$/, "");
    /** @type {string} */
    this._secret = options.secret ?? env.SANDBOX_SECRET ?? "";
    this._fetch = options.fetch ?? ((/** @type {any} */ a, /** @type {any} */ b) => fetch(a, b));
    this._WebSocket = options.WebSocket ?? globalThis.WebSocket;
    if (!/^https?:\/\/[^/]/.test(this.url)) throw new InvalidRequest(`'${this.url}' is not http://HOST:PORT`);
  }

  /** Any request; the answer is 2xx, or an error is thrown.
   * @param {string} method @param {string} path
   * @param {{body?: Contents, headers?: {[name: string]: string}, signal?: AbortSignal}} [options] @returns {Promise<Response>} */
  async request(method, path, options = {}) {
    /** @type {{[name: string]: string}} */
    const headers = { ...options.headers };
    if (this._secret) headers.Authorization = `Bearer ${this._secret}`;
    const stream = typeof ReadableStream !== "undefined" && options.body instanceof ReadableStream;
    let broke = false;
    for (let attempt = 0; ; attempt++) {
      let answer;
      try {
        answer = await this._fetch(this.url + path, /** @type {any} */ ({
          method, headers, body: options.body, signal: options.signal, ...(stream ? { duplex: "half" } : {}),
        }));
      } catch (cause) {
        if (options.signal?.aborted) throw cause;
        const why = /** @type {any} */ (cause)?.cause?.code ?? "";
        if (!broke && (method === "GET" || method === "HEAD") && why !== "ECONNREFUSED") {
          broke = true;
          continue;
        }
        throw new ConnectionFailed(`nobody answers at ${this.url}${why ? `: ${why}` : ""}`, {
          hint: "is the daemon running? SANDBOX_URL says where", cause });
      }
      if (answer.ok) return answer;
      const error = await refusal(answer);
      if (answer.status !== 503 || stream || !error.retryAfter || attempt === BUSY_RETRIES) throw error;
      const ms = Math.min(error.retryAfter * 1000, BUSY_MS) * (0.5 + Math.random() / 2);
      await new Promise((done) => setTimeout(done, ms));
    }
  }

  /** The same with JSON both ways.
   * @param {string} method @param {string} path @param {unknown} [body]
   * @param {{headers?: {[name: string]: string}, signal?: AbortSignal}} [options] @returns {Promise<any>} */
  async json(method, path, body, options = {}) {
    const answer = await this.request(method, path, {
      ...options, body: body === undefined ? undefined : JSON.stringify(body),
      headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...options.headers },
    });
    const text = await answer.text();
    return text ? JSON.parse(text) : undefined;
  }

  /** The same with an answer that comes as events.
   * @param {string} method @param {string} path @param {unknown} [body]
   * @param {{headers?: {[name: string]: string}, signal?: AbortSignal}} [options] @returns {AsyncGenerator<Event, void, void>} */
  async *events(method, path, body, options = {}) {
    const leave = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, leave.signal]) : leave.signal;
    try {
      yield* readEvents(await this.request(method, path, {
        body: body === undefined ? undefined : JSON.stringify(body), signal,
        headers: { Accept: "text/event-stream", "Content-Type": "application/json", ...options.headers },
      }));
    } finally {
      leave.abort();
    }
  }

  // -- code in fresh sandboxes --

  /** Runs code in a fresh sandbox and waits for its result.
   * @param {string} language @param {string} code @param {ExecuteOptions} [options] @returns {Promise<T.ExecutionResult>} */
  execute(language, code, options = {}) {
    const { files, signal, ...rest } = options;
    return this.json("POST", "/execute", { language, code, files: writeFiles(files), ...rest }, { signal, headers: { Prefer: "wait" } });
  }

  /** The same as events: stdout, stderr and progress as they come, then result. Leaving early cancels the run.
   * @param {string} language @param {string} code @param {ExecuteOptions} [options] */
  executeStream(language, code, options = {}) {
    const { files, signal, ...rest } = options;
    return this.events("POST", "/execute", { language, code, files: writeFiles(files), ...rest }, { signal });
  }

  /** Runs code without waiting: the id of the execution.
   * @param {string} language @param {string} code @param {ExecuteOptions} [options] @returns {Promise<string>} */
  async submit(language, code, options = {}) {
    const { files, signal, ...rest } = options;
    const body = { language, code, files: writeFiles(files), ...rest };
    return (await this.json("POST", "/execute", body, { signal, headers: { Prefer: "respond-async" } })).execution_id;
  }

  /** @param {string} id @returns {Promise<T.Execution>} */
  execution(id) {
    return this.json("GET", `/v1/executions/${part(id)}`);
  }

  /** @param {{[name: string]: unknown}} [which] @returns {Promise<T.Executions>} */
  executions(which) {
    return this.json("GET", "/v1/executions" + query(which));
  }

  /** What it has printed and prints, then its result; `after` is the id of the last event that was seen.
   * @param {string} id @param {string} [after] */
  watchExecution(id, after) {
    return this.events("GET", `/v1/executions/${part(id)}`, undefined, { headers: after ? { "Last-Event-ID": after } : {} });
  }

  /** Ends an execution, or forgets one that has ended. @param {string} id @returns {Promise<void>} */
  async cancel(id) {
    await this.json("DELETE", `/v1/executions/${part(id)}`);
  }

  /** @param {string} id @param {string} path @returns {Promise<Uint8Array>} */
  async artifact(id, path) {
    const answer = await this.request("GET", `/v1/executions/${part(id)}/artifacts/${path.split("/").map(part).join("/")}`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  // -- functions --

  /** Calls one function of a piece of code, once. A function that fails is a result, too.
   * @param {string} language @param {string} code @param {string} [name] @param {unknown} [args] @param {CallOptions} [options]
   * @returns {Promise<T.FunctionResult>} */
  call(language, code, name, args, options = {}) {
    return this.json("POST", "/v1/functions/call", { language, code, functionName: name, args, ...options });
  }

  /** A function of a piece of code as one of JavaScript: it resolves, or rejects with FunctionFailed.
   * @param {string} language @param {string} code @param {string} [name] @param {CallOptions} [options]
   * @returns {(...args: unknown[]) => Promise<any>} */
  function(language, code, name, options) {
    return async (...args) => valueOf(await this.call(language, code, name, args, options));
  }

  /** The functions of a piece of code, which is not run. @param {string} language @param {string} code @returns {Promise<T.Inspection>} */
  inspect(language, code) {
    return this.json("POST", "/v1/functions/inspect", { language, code });
  }

  /** Loads code once, to call its functions often.
   * @param {string} language @param {string} code @param {SessionOptions} [options] @returns {Promise<Session>} */
  async session(language, code, options = {}) {
    return new Session(this, (await this.json("POST", "/v1/sessions", { language, code, ...options })).id);
  }

  /** @returns {Promise<T.Session[]>} */
  async sessions() {
    return (await this.json("GET", "/v1/sessions")).sessions;
  }

  // -- sandboxes and packages, and the daemon itself --

  /** Makes a persistent sandbox. @param {T.SandboxCreate} [options] @returns {Promise<Sandbox>} */
  sandbox(options = {}) {
    return Sandbox.create({ ...options, client: this });
  }

  /** Those there are, of all pages. @param {{state?: string, metadata?: string, limit?: number}} [which] @returns {Promise<T.Sandbox[]>} */
  async sandboxes(which = {}) {
    const found = [];
    for (let after; ;) {
      const page = await this.json("GET", "/v1/sandboxes" + query({ ...which, after }));
      found.push(...page.sandboxes);
      after = page.next;
      if (!after) return found;
    }
  }

  /** @param {T.PackageSetCreate} lists @returns {Promise<T.PackageSet>} */
  install(lists) {
    return this.json("POST", "/v1/packages", lists);
  }

  /** @returns {Promise<T.PackageSet[]>} */
  async packages() {
    return (await this.json("GET", "/v1/packages")).packages;
  }

  /** @param {string} name @returns {Promise<void>} */
  async uninstall(name) {
    await this.json("DELETE", `/v1/packages/${part(name)}`);
  }

  /** @returns {Promise<T.Health>} */
  health() {
    return this.json("GET", "/health");
  }

  /** @returns {Promise<T.Capabilities>} */
  capabilities() {
    return this.json("GET", "/v1/capabilities");
  }
}

/** @param {T.FunctionResult} result @returns {any} */
function valueOf(result) {
  if (result.success) return result.result;
  throw new FunctionFailed(result);
}

/** Code that was loaded once; its variables stay between calls. */
export class Session {
  /** @param {Client} client @param {string} id */
  constructor(client, id) {
    this._client = client;
    this.id = id;
    this._path = `/v1/sessions/${part(id)}`;
  }

  /** What the function returns; FunctionFailed if it fails. @param {string} name @param {unknown[]} args @returns {Promise<any>} */
  async call(name, ...args) {
    return valueOf(await this.result({ functionName: name, args }));
  }

  /** The whole result of a call, also of one that failed. @param {T.SessionCall} call @returns {Promise<T.FunctionResult>} */
  result(call) {
    return this._client.json("POST", this._path + "/call", call);
  }

  /** The items of a generator, as they are made. @param {string} name @param {unknown[]} args @returns {AsyncGenerator<any, any, void>} */
  async *stream(name, ...args) {
    for await (const { event, data } of this._client.events("POST", this._path + "/call", { functionName: name, args })) {
      if (event === "item") yield data;
      else if (event === "result") return valueOf(data);
    }
  }

  /** @returns {Promise<T.Session>} */
  describe() {
    return this._client.json("GET", this._path);
  }

  /** @param {"soft" | "hard"} [level] @returns {Promise<T.FunctionResult>} */
  reset(level = "soft") {
    return this._client.json("POST", this._path + "/reset", { level });
  }

  /** Ends it. @returns {Promise<void>} */
  async close() {
    await this._client.json("DELETE", this._path);
  }

  /** @returns {Promise<void>} */
  [Symbol.asyncDispose]() {
    return this.close();
  }
}

// ---- persistent sandboxes ----

/** A persistent sandbox: commands, files, processes, terminals, live interpreters. `await using` removes it at the end. */
export class Sandbox {
  /** @param {Client} client @param {string} id @param {boolean} made */
  constructor(client, id, made) {
    this.client = client;
    this.id = id;
    this.path = `/v1/sandboxes/${part(id)}`;
    this._made = made;
    this.files = new Files(this);
    this.processes = new Processes(this);
  }

  /** @param {SandboxOptions} [options] @returns {Promise<Sandbox>} */
  static async create(options = {}) {
    const { client = new Client(), ...wishes } = options;
    return new Sandbox(client, (await client.json("POST", "/v1/sandboxes", wishes)).id, true);
  }

  /** One that exists, by id or name; it is not removed at the end. @param {string} [name] @param {Client} [client] */
  static connect(name = "default", client = new Client()) {
    return new Sandbox(client, name, false);
  }

  /** @returns {Promise<T.Sandbox>} */
  describe() {
    return this.client.json("GET", this.path);
  }

  /** @returns {Promise<T.Sandbox>} */
  pause() {
    return this.client.json("POST", this.path + "/pause");
  }

  /** @returns {Promise<T.Sandbox>} */
  resume() {
    return this.client.json("POST", this.path + "/resume");
  }

  /** @param {number} seconds @returns {Promise<T.Sandbox>} */
  setLifetime(seconds) {
    return this.client.json("POST", this.path + "/lifetime", { lifetime: seconds });
  }

  /** What it may reach, and what it has reached. @returns {Promise<T.SandboxNetwork>} */
  network() {
    return this.client.json("GET", this.path + "/network");
  }

  /** Replaces what it may reach. @param {string | object} rules @returns {Promise<T.SandboxNetwork>} */
  setNetwork(rules) {
    return this.client.json("PUT", this.path + "/network", rules);
  }

  /** Ends everything in it. @returns {Promise<void>} */
  async remove() {
    await this.client.json("DELETE", this.path);
  }

  /** @returns {Promise<void>} */
  async [Symbol.asyncDispose]() {
    if (this._made) await this.remove();
  }

  /** A command of the shell, until it has ended. @param {string} cmd @param {Omit<T.Command, "cmd">} [options] @returns {Promise<T.CommandResult>} */
  run(cmd, options = {}) {
    return this.client.json("POST", this.path + "/run", { cmd, ...options });
  }

  /** Runs a cell; variables stay for the next one. @param {string} code @param {string} [language] @param {CellOptions} [options] @returns {Promise<T.CellResult>} */
  runCode(code, language, options = {}) {
    return this.client.json("POST", this.path + "/cells", { code, language, ...options });
  }

  /** The same as events: started, stdout, stderr, display, clear, error, end. Leaving early interrupts the cell.
   * @param {string} code @param {string} [language] @param {CellOptions} [options] */
  runCodeStream(code, language, options = {}) {
    return this.client.events("POST", this.path + "/cells", { code, language, ...options });
  }

  /** @param {T.ContextCreate} [options] @returns {Promise<T.Context>} */
  createContext(options = {}) {
    return this.client.json("POST", this.path + "/contexts", options);
  }

  /** @returns {Promise<T.Context[]>} */
  async contexts() {
    return (await this.client.json("GET", this.path + "/contexts")).contexts;
  }

  /** @param {string} id @returns {Promise<T.Context>} */
  restartContext(id) {
    return this.client.json("POST", `${this.path}/contexts/${part(id)}/restart`);
  }

  /** @param {string} id @returns {Promise<T.Context>} */
  interruptContext(id) {
    return this.client.json("POST", `${this.path}/contexts/${part(id)}/interrupt`);
  }

  /** @param {string} id @returns {Promise<void>} */
  async removeContext(id) {
    await this.client.json("DELETE", `${this.path}/contexts/${part(id)}`);
  }

  /** A shell, or a command, in a terminal.
   * @param {{command?: string, columns?: number, rows?: number, cwd?: string, keep?: boolean}} [options] @returns {Promise<Terminal>} */
  terminal(options = {}) {
    return Terminal.open(this.client, `${this.path}/terminals${query({ columns: 80, rows: 24, keep: false, ...options })}`);
  }

  /** Where a server that listens inside is reached, with the secret. @param {number} port @param {string} [path] */
  portUrl(port, path = "/") {
    return `${this.client.url}${this.path}/ports/${port}${path}`;
  }
}

/** Files of a sandbox. Paths are absolute, or begin where commands do. */
export class Files {
  /** @param {Sandbox} sandbox */
  constructor(sandbox) {
    this._sandbox = sandbox;
  }

  /** @param {string} verb @param {object} body @returns {Promise<any>} */
  _post(verb, body) {
    return this._sandbox.client.json("POST", `${this._sandbox.path}/files/${verb}`, body);
  }

  /** Its bytes as they come: `body` of the answer. @param {string} path @returns {Promise<Response>} */
  open(path) {
    return this._sandbox.client.request("GET", `${this._sandbox.path}/files${filePath(path)}`);
  }

  /** @param {string} path @returns {Promise<Uint8Array>} */
  async read(path) {
    return new Uint8Array(await (await this.open(path)).arrayBuffer());
  }

  /** @param {string} path @returns {Promise<string>} */
  async readText(path) {
    return (await this.open(path)).text();
  }

  /** @param {string} path @param {Contents} data @returns {Promise<T.FileWritten>} */
  async write(path, data) {
    const answer = await this._sandbox.client.request("PUT", `${this._sandbox.path}/files${filePath(path)}`, {
      body: data, headers: { "Content-Type": "application/octet-stream" } });
    return answer.json();
  }

  /** Unpacks a tar archive into a directory. @param {string} path @param {Contents} tar @returns {Promise<T.FileWritten>} */
  async writeTar(path, tar) {
    const answer = await this._sandbox.client.request("PUT", `${this._sandbox.path}/files${filePath(path)}?archive=tar`, {
      body: tar, headers: { "Content-Type": "application/x-tar" } });
    return answer.json();
  }

  /** A directory as a tar archive. @param {string} path @returns {Promise<Response>} */
  readTar(path) {
    return this._sandbox.client.request("GET", `${this._sandbox.path}/files${filePath(path)}?archive=tar`);
  }

  /** @param {string} path @returns {Promise<T.FileEntry>} */
  stat(path) {
    return this._post("stat", { path });
  }

  /** @param {string} path @returns {Promise<boolean>} */
  async exists(path) {
    return (await this._post("exists", { path })).exists;
  }

  /** What is in a directory and so many levels below. @param {string} [path] @param {number} [depth] @returns {Promise<T.FileEntry[]>} */
  async list(path = ".", depth = 1) {
    const found = [];
    for (let after; ;) {
      const page = await this._post("list", { path, depth, after });
      found.push(...page.entries);
      after = page.next;
      if (after === null) return found;
    }
  }

  /** @param {string} from @param {string} to @param {boolean} [replace] @returns {Promise<T.FileEntry>} */
  move(from, to, replace = false) {
    return this._post("move", { from, to, replace });
  }

  /** @param {string} from @param {string} to @param {boolean} [replace] @returns {Promise<T.FileEntry>} */
  copy(from, to, replace = false) {
    return this._post("copy", { from, to, replace });
  }

  /** @param {string} path @param {{recursive?: boolean}} [options] @returns {Promise<void>} */
  async remove(path, options = {}) {
    await this._sandbox.client.json("DELETE", `${this._sandbox.path}/files${filePath(path)}${options.recursive ? "?recursive=true" : ""}`);
  }

  /** What happens in a directory, from the event `ready` on. @param {string} [path] @param {{recursive?: boolean, entries?: boolean}} [options] */
  watch(path = ".", options = {}) {
    return this._sandbox.client.events("POST", this._sandbox.path + "/files/watch", { path, ...options });
  }

  /** A URL that opens this file without the secret. @param {T.FileSign} what @returns {Promise<T.FileUrl>} */
  sign(what) {
    return this._post("sign", what);
  }
}

/** Processes of a sandbox that outlive their request. */
export class Processes {
  /** @param {Sandbox} sandbox */
  constructor(sandbox) {
    this._sandbox = sandbox;
  }

  /** @param {string | T.ProcessStart} what a command of the shell, or all there is to say @returns {Promise<Process>} */
  async start(what) {
    const body = typeof what === "string" ? { command: what } : what;
    const made = await this._sandbox.client.json("POST", this._sandbox.path + "/processes", body);
    return new Process(this._sandbox, made.id, made.pid);
  }

  /** @returns {Promise<T.SandboxProcess[]>} */
  async list() {
    return (await this._sandbox.client.json("GET", this._sandbox.path + "/processes")).processes;
  }

  /** By its number, id or tag. @param {string | number} process @returns {Promise<Process>} */
  async get(process) {
    const found = await this._sandbox.client.json("GET", `${this._sandbox.path}/processes/${part(String(process))}`);
    return new Process(this._sandbox, found.id, found.pid);
  }
}

export class Process {
  /** @param {Sandbox} sandbox @param {string} id @param {number} pid */
  constructor(sandbox, id, pid) {
    this._sandbox = sandbox;
    this.id = id;
    this.pid = pid;
    this._path = `${sandbox.path}/processes/${part(id)}`;
  }

  /** @returns {Promise<T.SandboxProcess>} */
  describe() {
    return this._sandbox.client.json("GET", this._path);
  }

  /** What it wrote and writes, from a byte on or from "now", until it has ended.
   * @param {number | "now"} [from] @returns {AsyncGenerator<{stream: string, data: Uint8Array}, void, void>} */
  async *output(from = 0) {
    for await (const { event, data } of this._sandbox.client.events("GET", `${this._path}/output?from=${from}`)) {
      if (event === "end") return;
      if (event !== "gap") yield { stream: event, data: fromBase64(data.data) };
    }
  }

  /** Until it and its streams have ended: how it did. @returns {Promise<T.SandboxProcess>} */
  async wait() {
    for await (const _ of this.output("now"));
    return this.describe();
  }

  /** To its standard input, which was kept open by `stdin: true`. @param {Contents} data @returns {Promise<void>} */
  async write(data) {
    await this._sandbox.client.request("POST", this._path + "/stdin", { body: data, headers: { "Content-Type": "application/octet-stream" } });
  }

  /** @returns {Promise<void>} */
  async closeStdin() {
    await this._sandbox.client.json("DELETE", this._path + "/stdin");
  }

  /** @param {string} signal @param {"group" | "process"} [to] @returns {Promise<void>} */
  async signal(signal, to = "group") {
    await this._sandbox.client.json("POST", this._path + "/signal", { signal, to });
  }

  /** @param {number} columns @param {number} rows @returns {Promise<void>} */
  async resize(columns, rows) {
    await this._sandbox.client.json("POST", this._path + "/size", { columns, rows });
  }

  /** @returns {Promise<void>} */
  async kill() {
    await this._sandbox.client.json("DELETE", this._path);
  }

  /** The terminal of a process that has one. @returns {Promise<Terminal>} */
  terminal() {
    return Terminal.open(this._sandbox.client, `${this._sandbox.path}/terminals/${part(this.id)}`);
  }
}

/** Keys in, bytes out: `for await (const data of terminal)`. `process` tells how it ended. */
export class Terminal {
  /** @param {WebSocket} socket */
  constructor(socket) {
    this._socket = socket;
    /** @type {T.SandboxProcess | undefined} */
    this.process = undefined;
    /** @type {Uint8Array[]} */
    this._shown = [];
    this._over = false;
    /** @type {() => void} */
    this._wake = () => {};
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      if (typeof data !== "string") {
        this._shown.push(new Uint8Array(data));
      } else {
        const said = JSON.parse(data);
        if (said.type === "end") this.process = said.process;
      }
      this._wake();
    };
    socket.onclose = () => {
      this._over = true;
      this._wake();
    };
  }

  /** @param {Client} client @param {string} path @returns {Promise<Terminal>} */
  static open(client, path) {
    if (!client._WebSocket) throw new SandboxError("there is no WebSocket here", { hint: "Node.js 22 has one, 20 with --experimental-websocket; or give one to new Client({ WebSocket })" });
    const protocols = ["sandbox-executor", ...(client._secret ? [`bearer.${client._secret}`] : [])];
    const socket = new client._WebSocket(client.url.replace(/^http/, "ws") + path, protocols);
    const terminal = new Terminal(socket);
    return new Promise((done, failed) => {
      socket.onopen = () => done(terminal);
      socket.onerror = () => failed(new ConnectionFailed(`no terminal at ${client.url}`, { hint: "a WebSocket does not say why; terminals of this sandbox may be refused or its name wrong" }));
    });
  }

  /** Keys. @param {string | Uint8Array} data */
  send(data) {
    this._socket.send(typeof data === "string" ? new TextEncoder().encode(data) : /** @type {any} */ (data));
  }

  /** @param {number} columns @param {number} rows */
  resize(columns, rows) {
    this._socket.send(JSON.stringify({ type: "resize", columns, rows }));
  }

  /** @param {string} signal */
  signal(signal) {
    this._socket.send(JSON.stringify({ type: "signal", signal }));
  }

  /** @returns {AsyncGenerator<Uint8Array, void, void>} */
  async *[Symbol.asyncIterator]() {
    for (;;) {
      const next = this._shown.shift();
      if (next) yield next;
      else if (this._over) return;
      else await new Promise((wake) => (this._wake = () => wake(undefined)));
    }
  }

  /** Ends the program, unless it was started with `keep: true`. */
  close() {
    this._socket.close();
  }

  async [Symbol.asyncDispose]() {
    this.close();
  }
}
