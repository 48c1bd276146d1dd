// SPDX-License-Identifier: MIT
// From index.js; made by tools/make-clients: change that, or the table it reads, instead.
/** Every error of this package. `hint` says what may help. A program that fails is no error: that is a result. */
export class SandboxError extends Error {
    /** @param {string} message @param {{hint?: string, status?: number, code?: string, requestId?: string, details?: unknown, retryAfter?: number, cause?: unknown}} [about] */
    constructor(message: string, about?: {
        hint?: string;
        status?: number;
        code?: string;
        requestId?: string;
        details?: unknown;
        retryAfter?: number;
        cause?: unknown;
    });
    hint: string;
    status: number;
    code: string;
    requestId: string;
    details: unknown;
    retryAfter: number;
}
/** Nobody answers there, or the connection broke. */
export class ConnectionFailed extends SandboxError {
}
/** The request makes no sense to the daemon: 400, 405, 413, 422 and the like. */
export class InvalidRequest extends SandboxError {
}
/** 401: the secret is missing or wrong. */
export class Unauthorized extends SandboxError {
}
/** 403: the operator does not allow it, or this host cannot do it. */
export class Forbidden extends SandboxError {
}
/** 404: there is no such thing (any more). */
export class NotFound extends SandboxError {
}
/** 409: not in this state. */
export class Conflict extends SandboxError {
}
/** 429 or 503: a limit is reached; `retryAfter` seconds may help. */
export class Busy extends SandboxError {
}
/** The daemon or its host failed: 500 and above. */
export class ServerFailed extends SandboxError {
}
/** A function that was called has failed; `type` is the program's own. */
export class FunctionFailed extends SandboxError {
    /** @param {T.FunctionResult} result */
    constructor(result: T.FunctionResult);
    type: string;
    result: T.FunctionResult;
}
/** One daemon. Without options: $SANDBOX_URL (or port 8080 of this host) and $SANDBOX_SECRET; in a page, its own origin. */
export class Client {
    /** @param {{url?: string, secret?: string, fetch?: typeof fetch, WebSocket?: typeof WebSocket}} [options] */
    constructor(options?: {
        url?: string;
        secret?: string;
        fetch?: typeof fetch;
        WebSocket?: typeof WebSocket;
    });
    /** @type {string} */
    url: string;
    /** @type {string} */
    _secret: string;
    _fetch: typeof fetch;
    _WebSocket: {
        new (url: string | URL, protocols?: string | string[]): WebSocket;
        prototype: WebSocket;
        readonly CONNECTING: 0;
        readonly OPEN: 1;
        readonly CLOSING: 2;
        readonly CLOSED: 3;
    };
    /** Any request; the answer is 2xx, or an error is thrown.
     * @param {string} method @param {string} path
     * @param {{body?: Contents, headers?: {[name: string]: string}, signal?: AbortSignal}} [options] @returns {Promise<Response>} */
    request(method: string, path: string, options?: {
        body?: Contents;
        headers?: {
            [name: string]: string;
        };
        signal?: AbortSignal;
    }): Promise<Response>;
    /** The same with JSON both ways.
     * @param {string} method @param {string} path @param {unknown} [body]
     * @param {{headers?: {[name: string]: string}, signal?: AbortSignal}} [options] @returns {Promise<any>} */
    json(method: string, path: string, body?: unknown, options?: {
        headers?: {
            [name: string]: string;
        };
        signal?: AbortSignal;
    }): Promise<any>;
    /** The same with an answer that comes as events.
     * @param {string} method @param {string} path @param {unknown} [body]
     * @param {{headers?: {[name: string]: string}, signal?: AbortSignal}} [options] @returns {AsyncGenerator<Event, void, void>} */
    events(method: string, path: string, body?: unknown, options?: {
        headers?: {
            [name: string]: string;
        };
        signal?: AbortSignal;
    }): AsyncGenerator<Event, void, void>;
    /** Runs code in a fresh sandbox and waits for its result.
     * @param {string} language @param {string} code @param {ExecuteOptions} [options] @returns {Promise<T.ExecutionResult>} */
    execute(language: string, code: string, options?: ExecuteOptions): Promise<T.ExecutionResult>;
    /** The same as events: stdout, stderr and progress as they come, then result. Leaving early cancels the run.
     * @param {string} language @param {string} code @param {ExecuteOptions} [options] */
    executeStream(language: string, code: string, options?: ExecuteOptions): AsyncGenerator<Event, void, void>;
    /** Runs code without waiting: the id of the execution.
     * @param {string} language @param {string} code @param {ExecuteOptions} [options] @returns {Promise<string>} */
    submit(language: string, code: string, options?: ExecuteOptions): Promise<string>;
    /** @param {string} id @returns {Promise<T.Execution>} */
    execution(id: string): Promise<T.Execution>;
    /** @param {{[name: string]: unknown}} [which] @returns {Promise<T.Executions>} */
    executions(which?: {
        [name: string]: unknown;
    }): Promise<T.Executions>;
    /** What it has printed and prints, then its result; `after` is the id of the last event that was seen.
     * @param {string} id @param {string} [after] */
    watchExecution(id: string, after?: string): AsyncGenerator<Event, void, void>;
    /** Ends an execution, or forgets one that has ended. @param {string} id @returns {Promise<void>} */
    cancel(id: string): Promise<void>;
    /** @param {string} id @param {string} path @returns {Promise<Uint8Array>} */
    artifact(id: string, path: string): Promise<Uint8Array>;
    /** Calls one function of a piece of code, once. A function that fails is a result, too.
     * @param {string} language @param {string} code @param {string} [name] @param {unknown} [args] @param {CallOptions} [options]
     * @returns {Promise<T.FunctionResult>} */
    call(language: string, code: string, name?: string, args?: unknown, options?: CallOptions): Promise<T.FunctionResult>;
    /** A function of a piece of code as one of JavaScript: it resolves, or rejects with FunctionFailed.
     * @param {string} language @param {string} code @param {string} [name] @param {CallOptions} [options]
     * @returns {(...args: unknown[]) => Promise<any>} */
    function(language: string, code: string, name?: string, options?: CallOptions): (...args: unknown[]) => Promise<any>;
    /** The functions of a piece of code, which is not run. @param {string} language @param {string} code @returns {Promise<T.Inspection>} */
    inspect(language: string, code: string): Promise<T.Inspection>;
    /** Loads code once, to call its functions often.
     * @param {string} language @param {string} code @param {SessionOptions} [options] @returns {Promise<Session>} */
    session(language: string, code: string, options?: SessionOptions): Promise<Session>;
    /** @returns {Promise<T.Session[]>} */
    sessions(): Promise<T.Session[]>;
    /** Makes a persistent sandbox. @param {T.SandboxCreate} [options] @returns {Promise<Sandbox>} */
    sandbox(options?: T.SandboxCreate): Promise<Sandbox>;
    /** Those there are, of all pages. @param {{state?: string, metadata?: string, limit?: number}} [which] @returns {Promise<T.Sandbox[]>} */
    sandboxes(which?: {
        state?: string;
        metadata?: string;
        limit?: number;
    }): Promise<T.Sandbox[]>;
    /** @param {T.PackageSetCreate} lists @returns {Promise<T.PackageSet>} */
    install(lists: T.PackageSetCreate): Promise<T.PackageSet>;
    /** @returns {Promise<T.PackageSet[]>} */
    packages(): Promise<T.PackageSet[]>;
    /** @param {string} name @returns {Promise<void>} */
    uninstall(name: string): Promise<void>;
    /** @returns {Promise<T.Health>} */
    health(): Promise<T.Health>;
    /** @returns {Promise<T.Capabilities>} */
    capabilities(): Promise<T.Capabilities>;
}
/** Code that was loaded once; its variables stay between calls. */
export class Session {
    /** @param {Client} client @param {string} id */
    constructor(client: Client, id: string);
    _client: Client;
    id: string;
    _path: string;
    /** What the function returns; FunctionFailed if it fails. @param {string} name @param {unknown[]} args @returns {Promise<any>} */
    call(name: string, ...args: unknown[]): Promise<any>;
    /** The whole result of a call, also of one that failed. @param {T.SessionCall} call @returns {Promise<T.FunctionResult>} */
    result(call: T.SessionCall): Promise<T.FunctionResult>;
    /** The items of a generator, as they are made. @param {string} name @param {unknown[]} args @returns {AsyncGenerator<any, any, void>} */
    stream(name: string, ...args: unknown[]): AsyncGenerator<any, any, void>;
    /** @returns {Promise<T.Session>} */
    describe(): Promise<T.Session>;
    /** @param {"soft" | "hard"} [level] @returns {Promise<T.FunctionResult>} */
    reset(level?: "soft" | "hard"): Promise<T.FunctionResult>;
    /** Ends it. @returns {Promise<void>} */
    close(): Promise<void>;
    /** @returns {Promise<void>} */
    [Symbol.asyncDispose](): Promise<void>;
}
/** A persistent sandbox: commands, files, processes, terminals, live interpreters. `await using` removes it at the end. */
export class Sandbox {
    /** @param {SandboxOptions} [options] @returns {Promise<Sandbox>} */
    static create(options?: SandboxOptions): Promise<Sandbox>;
    /** One that exists, by id or name; it is not removed at the end. @param {string} [name] @param {Client} [client] */
    static connect(name?: string, client?: Client): Sandbox;
    /** @param {Client} client @param {string} id @param {boolean} made */
    constructor(client: Client, id: string, made: boolean);
    client: Client;
    id: string;
    path: string;
    _made: boolean;
    files: Files;
    processes: Processes;
    /** @returns {Promise<T.Sandbox>} */
    describe(): Promise<T.Sandbox>;
    /** @returns {Promise<T.Sandbox>} */
    pause(): Promise<T.Sandbox>;
    /** @returns {Promise<T.Sandbox>} */
    resume(): Promise<T.Sandbox>;
    /** @param {number} seconds @returns {Promise<T.Sandbox>} */
    setLifetime(seconds: number): Promise<T.Sandbox>;
    /** What it may reach, and what it has reached. @returns {Promise<T.SandboxNetwork>} */
    network(): Promise<T.SandboxNetwork>;
    /** Replaces what it may reach. @param {string | object} rules @returns {Promise<T.SandboxNetwork>} */
    setNetwork(rules: string | object): Promise<T.SandboxNetwork>;
    /** Ends everything in it. @returns {Promise<void>} */
    remove(): Promise<void>;
    /** A command of the shell, until it has ended. @param {string} cmd @param {Omit<T.Command, "cmd">} [options] @returns {Promise<T.CommandResult>} */
    run(cmd: string, options?: Omit<T.Command, "cmd">): Promise<T.CommandResult>;
    /** Runs a cell; variables stay for the next one. @param {string} code @param {string} [language] @param {CellOptions} [options] @returns {Promise<T.CellResult>} */
    runCode(code: string, language?: string, options?: CellOptions): Promise<T.CellResult>;
    /** The same as events: started, stdout, stderr, display, clear, error, end. Leaving early interrupts the cell.
     * @param {string} code @param {string} [language] @param {CellOptions} [options] */
    runCodeStream(code: string, language?: string, options?: CellOptions): AsyncGenerator<Event, void, void>;
    /** @param {T.ContextCreate} [options] @returns {Promise<T.Context>} */
    createContext(options?: T.ContextCreate): Promise<T.Context>;
    /** @returns {Promise<T.Context[]>} */
    contexts(): Promise<T.Context[]>;
    /** @param {string} id @returns {Promise<T.Context>} */
    restartContext(id: string): Promise<T.Context>;
    /** @param {string} id @returns {Promise<T.Context>} */
    interruptContext(id: string): Promise<T.Context>;
    /** @param {string} id @returns {Promise<void>} */
    removeContext(id: string): Promise<void>;
    /** A shell, or a command, in a terminal.
     * @param {{command?: string, columns?: number, rows?: number, cwd?: string, keep?: boolean}} [options] @returns {Promise<Terminal>} */
    terminal(options?: {
        command?: string;
        columns?: number;
        rows?: number;
        cwd?: string;
        keep?: boolean;
    }): Promise<Terminal>;
    /** Where a server that listens inside is reached, with the secret. @param {number} port @param {string} [path] */
    portUrl(port: number, path?: string): string;
    /** @returns {Promise<void>} */
    [Symbol.asyncDispose](): Promise<void>;
}
/** Files of a sandbox. Paths are absolute, or begin where commands do. */
export class Files {
    /** @param {Sandbox} sandbox */
    constructor(sandbox: Sandbox);
    _sandbox: Sandbox;
    /** @param {string} verb @param {object} body @returns {Promise<any>} */
    _post(verb: string, body: object): Promise<any>;
    /** Its bytes as they come: `body` of the answer. @param {string} path @returns {Promise<Response>} */
    open(path: string): Promise<Response>;
    /** @param {string} path @returns {Promise<Uint8Array>} */
    read(path: string): Promise<Uint8Array>;
    /** @param {string} path @returns {Promise<string>} */
    readText(path: string): Promise<string>;
    /** @param {string} path @param {Contents} data @returns {Promise<T.FileWritten>} */
    write(path: string, data: Contents): Promise<T.FileWritten>;
    /** Unpacks a tar archive into a directory. @param {string} path @param {Contents} tar @returns {Promise<T.FileWritten>} */
    writeTar(path: string, tar: Contents): Promise<T.FileWritten>;
    /** A directory as a tar archive. @param {string} path @returns {Promise<Response>} */
    readTar(path: string): Promise<Response>;
    /** @param {string} path @returns {Promise<T.FileEntry>} */
    stat(path: string): Promise<T.FileEntry>;
    /** @param {string} path @returns {Promise<boolean>} */
    exists(path: string): Promise<boolean>;
    /** What is in a directory and so many levels below. @param {string} [path] @param {number} [depth] @returns {Promise<T.FileEntry[]>} */
    list(path?: string, depth?: number): Promise<T.FileEntry[]>;
    /** @param {string} from @param {string} to @param {boolean} [replace] @returns {Promise<T.FileEntry>} */
    move(from: string, to: string, replace?: boolean): Promise<T.FileEntry>;
    /** @param {string} from @param {string} to @param {boolean} [replace] @returns {Promise<T.FileEntry>} */
    copy(from: string, to: string, replace?: boolean): Promise<T.FileEntry>;
    /** @param {string} path @param {{recursive?: boolean}} [options] @returns {Promise<void>} */
    remove(path: string, options?: {
        recursive?: boolean;
    }): Promise<void>;
    /** What happens in a directory, from the event `ready` on. @param {string} [path] @param {{recursive?: boolean, entries?: boolean}} [options] */
    watch(path?: string, options?: {
        recursive?: boolean;
        entries?: boolean;
    }): AsyncGenerator<Event, void, void>;
    /** A URL that opens this file without the secret. @param {T.FileSign} what @returns {Promise<T.FileUrl>} */
    sign(what: T.FileSign): Promise<T.FileUrl>;
}
/** Processes of a sandbox that outlive their request. */
export class Processes {
    /** @param {Sandbox} sandbox */
    constructor(sandbox: Sandbox);
    _sandbox: Sandbox;
    /** @param {string | T.ProcessStart} what a command of the shell, or all there is to say @returns {Promise<Process>} */
    start(what: string | T.ProcessStart): Promise<Process>;
    /** @returns {Promise<T.SandboxProcess[]>} */
    list(): Promise<T.SandboxProcess[]>;
    /** By its number, id or tag. @param {string | number} process @returns {Promise<Process>} */
    get(process: string | number): Promise<Process>;
}
export class Process {
    /** @param {Sandbox} sandbox @param {string} id @param {number} pid */
    constructor(sandbox: Sandbox, id: string, pid: number);
    _sandbox: Sandbox;
    id: string;
    pid: number;
    _path: string;
    /** @returns {Promise<T.SandboxProcess>} */
    describe(): Promise<T.SandboxProcess>;
    /** What it wrote and writes, from a byte on or from "now", until it has ended.
     * @param {number | "now"} [from] @returns {AsyncGenerator<{stream: string, data: Uint8Array}, void, void>} */
    output(from?: number | "now"): AsyncGenerator<{
        stream: string;
        data: Uint8Array;
    }, void, void>;
    /** Until it and its streams have ended: how it did. @returns {Promise<T.SandboxProcess>} */
    wait(): Promise<T.SandboxProcess>;
    /** To its standard input, which was kept open by `stdin: true`. @param {Contents} data @returns {Promise<void>} */
    write(data: Contents): Promise<void>;
    /** @returns {Promise<void>} */
    closeStdin(): Promise<void>;
    /** @param {string} signal @param {"group" | "process"} [to] @returns {Promise<void>} */
    signal(signal: string, to?: "group" | "process"): Promise<void>;
    /** @param {number} columns @param {number} rows @returns {Promise<void>} */
    resize(columns: number, rows: number): Promise<void>;
    /** @returns {Promise<void>} */
    kill(): Promise<void>;
    /** The terminal of a process that has one. @returns {Promise<Terminal>} */
    terminal(): Promise<Terminal>;
}
/** Keys in, bytes out: `for await (const data of terminal)`. `process` tells how it ended. */
export class Terminal {
    /** @param {Client} client @param {string} path @returns {Promise<Terminal>} */
    static open(client: Client, path: string): Promise<Terminal>;
    /** @param {WebSocket} socket */
    constructor(socket: WebSocket);
    _socket: WebSocket;
    /** @type {T.SandboxProcess | undefined} */
    process: T.SandboxProcess | undefined;
    /** @type {Uint8Array[]} */
    _shown: Uint8Array[];
    _over: boolean;
    /** @type {() => void} */
    _wake: () => void;
    /** Keys. @param {string | Uint8Array} data */
    send(data: string | Uint8Array): void;
    /** @param {number} columns @param {number} rows */
    resize(columns: number, rows: number): void;
    /** @param {string} signal */
    signal(signal: string): void;
    /** Ends the program, unless it was started with `keep: true`. */
    close(): void;
    /** @returns {AsyncGenerator<Uint8Array, void, void>} */
    [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void>;
    [Symbol.asyncDispose](): Promise<void>;
}
export type Contents = string | Uint8Array | Blob | ReadableStream<Uint8Array>;
export type FilesGiven = {
    [name: string]: string | Uint8Array;
};
export type ExecuteOptions = Omit<T.ExecuteRequest, "language" | "code" | "files"> & {
    files?: FilesGiven;
    signal?: AbortSignal;
};
export type CallOptions = Omit<T.FunctionCall, "language" | "code" | "functionName" | "args">;
export type SessionOptions = Omit<T.SessionCreate, "language" | "code">;
export type SandboxOptions = T.SandboxCreate & {
    client?: Client;
};
export type CellOptions = Omit<T.Cell, "code" | "language">;
export type Event = {
    event: string;
    id: string;
    data: any;
};
import type * as T from "./types.d.ts";
