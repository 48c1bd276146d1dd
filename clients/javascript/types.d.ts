// SPDX-License-Identifier: MIT
// What the daemon takes and answers; made by tools/make-clients: change that, or the table it reads, instead.

export interface Capabilities {
  version?: string;
  /** the default one */
  jail?: string;
  isolation_level?: string;
  /** what the default jail isolates */
  traits?: string[];
  /** what it does not */
  traits_missing?: string[];
  /** what on this host is in the way of them, and what to do about it */
  advice?: string[];
  /** warmed interpreters, and why one cannot be warmed */
  templates?: unknown;
  /** name, allowed, available, default, version, reason */
  jails?: (Record<string, unknown>)[];
  /** of one execution */
  limits?: Record<string, unknown>;
  /** name, version, available */
  languages?: (Record<string, unknown>)[];
  /** languages of the engine wasm */
  wasm?: Record<string, unknown>;
  /** sizes and sources of options */
  settings?: Record<string, unknown>;
  /** packages can be installed */
  dependency_sync?: boolean;
}

export interface Cell {
  /** what is run */
  code: string;
  /** id of a context; default: the one of the language */
  context?: string;
  /** python (default), javascript, typescript, bash or r: the sandbox's default context of it */
  language?: string;
  /** variables of this cell only */
  env?: Record<string, string>;
  /** seconds after which it is interrupted; default 300; 0: never */
  timeout?: number;
}

export interface CellResult {
  /** id of the interpreter */
  context?: string;
  language?: string;
  /** number of the cell in its context */
  execution_count?: number;
  /** ok, error, timeout, interrupted or crashed */
  status: string;
  stdout: string;
  stderr: string;
  stdout_truncated?: boolean;
  stderr_truncated?: boolean;
  /** what was displayed: a MIME bundle each; main: the value of the last expression */
  results: ({ data?: Record<string, unknown>; metadata?: Record<string, unknown>; main?: boolean })[];
  results_truncated?: boolean;
  error?: { name?: string; value?: string; traceback?: string } | null;
  /** the state of the context was lost before this cell */
  restarted?: boolean;
  /** why the interpreter did not start */
  failure?: string;
  /** how an interpreter ended that crashed */
  termination?: Record<string, unknown>;
  /** queue_ms, start_ms, run_ms */
  timings?: Record<string, unknown>;
}

export interface Changed {
  /** why not */
  error?: string;
  success: boolean;
}

export interface Command {
  /** for sh -c */
  cmd: string;
  /** working directory */
  cwd?: string;
  /** environment variables */
  env?: Record<string, string>;
  /** seconds after which it is killed; 0: never */
  timeout?: number;
  /** standard input */
  stdin?: string;
}

export interface CommandResult {
  stdout: string;
  stderr: string;
  /** if the code is not 0 */
  error?: string;
  /** -1: ended by a signal */
  code: number;
  /** only when it was cut */
  stdout_truncated?: boolean;
  /** only when it was cut */
  stderr_truncated?: boolean;
  /** what was refused, setting, advice */
  denied?: (Record<string, unknown>)[];
  /** below /v1/sandboxes: what may help */
  hint?: string;
  /** below /v1/sandboxes: reason, signal */
  termination?: Record<string, unknown>;
  /** below /v1/sandboxes: queue_ms, start_ms, run_ms, total_ms */
  timings?: Record<string, unknown>;
}

export interface ConsoleLogin {
  /** what follows '#ticket=' in the address */
  ticket: string;
}

export interface ConsoleSession {
  /** a bearer token that opens what the secret opens */
  key: string;
  /** UTC */
  expires_at: string;
}

export interface ConsoleTicket {
  /** is exchanged for a key, once */
  ticket: string;
  /** with the ticket in its fragment */
  path: string;
  /** seconds */
  expires_in?: number;
}

export interface Context {
  id: string;
  /** python, javascript, typescript, bash or r */
  language: string;
  /** where it began */
  cwd?: string;
  /** starting, idle, busy or down */
  state: string;
  /** made on first use for cells that name only a language */
  default?: boolean;
  /** cells that began */
  execution_count?: number;
  /** cells that wait */
  waiting?: number;
  created_at?: string;
}

export interface ContextCreate {
  /** python (default), javascript, typescript, bash or r */
  language?: string;
  /** where it begins, default /workspace */
  cwd?: string;
}

export interface Contexts {
  /** in the order of their making */
  contexts: Context[];
}

export interface DependencySync {
  /** completed */
  status: string;
  /** name, version, install_location, install_time, is_from_template; transitive ones, too */
  installed_dependencies?: (Record<string, unknown>)[];
  /** empty */
  error?: string;
  /** UTC */
  started_at?: string;
  /** UTC */
  completed_at?: string;
}

export interface DependencySyncRequest {
  /** whose packages they are; the same as in POST /execute */
  session_id: string;
  /** begins with 'python' */
  language_runtime: string;
  /** http or https; its host and DEPENDENCY_HOSTS are all that an installation can reach */
  python_package_index_url: string;
  /** replace or merge: the same, since the list is complete */
  sync_mode: string;
  /** requirements (PEP 508); never options, paths or addresses that are not http(s) */
  dependencies?: string[];
}

export interface Entries {
  /** names, sorted */
  entries?: string[];
  /** why not */
  error?: string;
}

export interface ExecuteLimits {
  /** memory in MiB, files of the workspace included */
  memory_mb?: number;
  /** CPU time of everything inside, from 0.05 */
  cpu_seconds?: number;
  /** processes and threads */
  processes?: number;
  /** bytes kept of each of stdout and stderr */
  output_bytes?: number;
}

export interface ExecuteRequest {
  /** name of the execution; made when absent: [A-Za-z0-9._-]{1,128}, not starting with a dot */
  execution_id?: string;
  /** executions of one session share a kept workspace; the answer is PENDING at once */
  session_id?: string;
  /** source text, at most CODE_MAX bytes */
  code: string;
  /** python, javascript or shell */
  language: string;
  /** files in /workspace when the program starts, by path: a text, or {"base64": ...} */
  files?: Record<string, string | { base64: string }>;
  limits?: ExecuteLimits;
  /** wall time in seconds, from 0.05; default DEFAULT_TIMEOUT, or DEFAULT_TIMEOUT_SESSION with session_id */
  timeout?: number;
  /** handler: the program must define handler(event), which is called; script: it is not called. Absent: ... */
  mode?: string;
  /** handed to the handler as it is */
  event?: Record<string, unknown>;
  /** standard input; without 'event', a JSON object in it is also the event */
  stdin?: string;
  /** environment variables: an object of strings */
  env_vars?: Record<string, string>;
  /** name of a set of packages, or its lists; in place of those of the session */
  packages?: string | PackageLists;
  /** what its programs may reach: none, or by the rules of a Network as far as EGRESS permits; host only ... */
  network?: "none" | "public" | "host" | Network;
  /** where the result is sent as well, if the operator's WEBHOOK_HOSTS allows it: an http(s) address, or ... */
  webhook?: string | { url: string; secret?: string };
  /** which warmed Python: python, or python-datascience with numpy, pandas and matplotlib loaded */
  template?: string;
  /** name of a jail that ISOLATION allows, default the first of them; or wasm: python and javascript as ... */
  isolation?: string;
}

export interface Execution {
  execution_id: string;
  session_id?: string | null;
  /** queued, running, done */
  state: string;
  /** of a finished one */
  status?: string | null;
  language?: string;
  /** UTC */
  created_at?: string;
  /** what the program last reported, or null */
  progress?: unknown;
  /** of a finished one */
  result?: ExecutionResult | null;
}

export interface ExecutionPending {
  /** ask for it at /v1/executions/{id} */
  execution_id: string;
  /** PENDING */
  status: string;
  /** Execution submitted */
  message?: string;
}

export interface ExecutionResult {
  /** as asked for, or made */
  execution_id: string;
  /** error: the sandbox failed or a resource limit was met */
  status: "success" | "failed" | "timeout" | "error";
  /** exactly what the program wrote */
  stdout: string;
  /** the same, and at the end why it was stopped, if it was */
  stderr: string;
  /** 128 + signal; -1 when it did not end by itself */
  exit_code: number;
  /** seconds of wall time */
  execution_time?: number;
  /** what the handler returned, any JSON value */
  return_value?: unknown;
  /** duration_ms, cpu_time_ms, peak_memory_mb, io_*_bytes */
  metrics?: Record<string, unknown>;
  /** files left in the workspace, relative, sorted */
  artifacts?: string[];
  /** path, size, mime_type, type, created_at, checksum (SHA-256) */
  artifact_metadata?: (Record<string, unknown>)[];
  /** only when files could not be kept: path, size, reason */
  left_out?: (Record<string, unknown>)[];
  /** only when some were: how many files are not in the list */
  artifacts_left_out?: number;
  /** only when stdout was cut */
  stdout_truncated?: boolean;
  /** only when stderr was cut */
  stderr_truncated?: boolean;
  /** type, message and stack of an exception, if there was one */
  error?: Record<string, unknown>;
  /** reason, and signal, limit, limit_value, observed, hint if known */
  termination?: Record<string, unknown>;
  /** only after a failure: what was refused, setting, advice */
  denied?: (Record<string, unknown>)[];
  /** of one with a network: what was reached and refused */
  network?: NetworkRow[];
  /** connections to hosts beyond the first 64 */
  network_left_out?: number;
  /** jail, template, warm, traits */
  isolation?: Record<string, unknown>;
  /** queue_ms, start_ms, run_ms, collect_ms, total_ms */
  timings?: Record<string, unknown>;
}

export interface ExecutionRow {
  execution_id: string;
  session_id?: string | null;
  /** queued, running, collecting, done */
  state: string;
  /** of a finished one */
  status?: string | null;
  /** of a finished one: why it ended */
  reason?: string | null;
  language?: string;
  /** UTC */
  created_at?: string;
  /** of a finished one */
  exit_code?: number;
  /** of a finished one */
  total_ms?: number;
  /** of a finished one */
  stdout_bytes?: number;
  /** of a finished one */
  stderr_bytes?: number;
  /** of a finished one: how many */
  artifacts?: number;
}

export interface ExecutionStopping {
  execution_id?: string;
  /** stopping */
  state?: string;
}

export interface Executions {
  /** the newest first */
  executions: ExecutionRow[];
  /** cursor of the next page; null: there is none */
  next?: string | null;
}

export interface FileContent {
  /** the file as text */
  content?: string;
  /** why not */
  error?: string;
}

export interface FileEntries {
  /** the directory */
  path: string;
  /** each directory before what is in it, sorted by bytes */
  entries: FileEntry[];
  /** `after` of the next part; null: this is the last one */
  next: string | null;
}

export interface FileEntry {
  /** the last part of the path */
  name: string;
  /** absolute */
  path: string;
  /** only of a path that is not UTF-8: its bytes */
  path_base64?: string;
  /** file, directory, symlink, fifo, socket or device */
  type: string;
  /** bytes */
  size: number;
  /** octal, such as 0644 */
  mode: string;
  /** as ls writes them, such as -rw-r--r-- */
  permissions?: string;
  /** a name, or its number */
  owner?: string;
  /** a name, or its number */
  group?: string;
  uid?: number;
  gid?: number;
  /** UTC */
  modified_at?: string;
  /** UTC */
  accessed_at?: string;
  /** UTC, also of its mode and its name */
  changed_at?: string;
  /** only of a symbolic link: its text */
  link?: string;
  /** the same: where it leads, absolute; null: nowhere */
  target?: string | null;
  /** the same: what is there */
  target_type?: string | null;
  /** only when it has some: names and values of an upload */
  metadata?: Record<string, unknown>;
}

export interface FileExists {
  exists: boolean;
}

export interface FileList {
  /** a directory; absolute, or below the directory that commands begin in */
  path: string;
  /** levels of directories, default 1 */
  depth?: number;
  /** entries in this part, default 10000 */
  limit?: number;
  /** `next` of the part before */
  after?: string;
}

export interface FileMove {
  /** absolute, or below the directory that commands begin in */
  from: string;
  /** the new path; its parents are made */
  to: string;
  /** what is there, default false */
  replace?: boolean;
}

export interface FilePath {
  /** absolute, or below the directory that commands begin in */
  path: string;
}

export interface FileSign {
  /** absolute, or below the directory that commands begin in */
  path: string;
  /** GET (default) or PUT */
  method?: string;
  /** seconds, default 3600 */
  expires_in?: number;
}

export interface FileUrl {
  /** GET or PUT */
  method: string;
  /** path and query; it opens this file alone */
  url: string;
  /** UTC */
  expires_at: string;
}

export interface FileWatch {
  /** a directory; absolute, or below the directory that commands begin in */
  path: string;
  /** directories below it, too, default false */
  recursive?: boolean;
  /** each event with what the file is then, default false */
  entries?: boolean;
}

export interface FileWrite {
  /** in the sandbox; relative to its workspace */
  path: string;
  /** the whole of it, as text */
  content?: string;
}

export interface FileWritten {
  path: string;
  /** bytes */
  size?: number;
  /** of an archive */
  files?: number;
  /** of an archive */
  directories?: number;
}

export interface FilesWritten {
  /** in the order of the body */
  files: FileEntry[];
}

export interface FunctionCall {
  /** python, javascript, ruby, php, c, cpp, perl; or an alias */
  language: string;
  /** source text */
  code: string;
  /** what runs it; native */
  engine?: "native" | "wasm";
  /** name of another jail that is allowed */
  isolation?: string;
  /** name of a set of packages, or its lists; installed first */
  packages?: string | PackageLists;
  /** which function */
  functionName?: string;
  /** by position, by name, or {index, value} */
  args?: unknown[] | Record<string, unknown>;
  /** by name */
  kwargs?: Record<string, unknown>;
  /** input, output, strict, variadic, acceptsKwargs */
  schema?: Record<string, unknown>;
  /** seconds of wall time */
  timeout?: number;
  /** how arguments travel */
  argsMode?: "auto" | "inline" | "stdin" | "file";
  /** bytes of arguments from which auto means file */
  autoModeThreshold?: number;
  /** standard input of a module */
  stdin?: string;
  /** where the result is sent as well, if the operator's WEBHOOK_HOSTS allows it: an http(s) address, or ... */
  webhook?: string | { url: string; secret?: string };
  options?: FunctionOptions;
}

export interface FunctionFiles {
  /** type, path, content, size, timestamp */
  created?: (Record<string, unknown>)[];
  /** the same, and oldContent */
  modified?: (Record<string, unknown>)[];
  /** type, path, oldContent */
  deleted?: (Record<string, unknown>)[];
  /** path, operation */
  denied?: (Record<string, unknown>)[];
  /** changes that are not listed, if there are any */
  leftOut?: number;
}

export interface FunctionOptions {
  /** path to text, or to {base64}; there before the call */
  files?: Record<string, string | { base64: string }>;
  mount?: Mount;
  /** working directory; /workspace */
  workdir?: string;
  permissions?: Permissions;
  reporting?: FunctionReporting;
  /** environment variables */
  env?: Record<string, string>;
  /** of C and C++: the standard, such as c17 */
  std?: string;
}

export interface FunctionReporting {
  /** files; true */
  includeChanges?: boolean;
  /** content and oldContent of changes; true */
  includeContents?: boolean;
  /** what was not allowed; true */
  includeDenied?: boolean;
}

export interface FunctionResult {
  /** what became of it */
  status: "success" | "error" | "crash" | "timeout" | "terminated";
  /** status is success */
  success: boolean;
  /** what the function returned, any JSON value */
  result?: unknown;
  /** type, message, stack */
  error?: Record<string, unknown>;
  /** exactly what was written */
  stdout?: string;
  /** the same */
  stderr?: string;
  /** 0; 1 after an error, 124 a timeout, 143 cancelled */
  exitCode?: number;
  /** what it changed */
  files?: FunctionFiles;
  /** synced, failed, skipped, rolledBack, events */
  sync?: Record<string, unknown>;
  /** duration, signatureSource, callId, engine, language, functionName, argsMode, loading, loadingReason */
  meta?: Record<string, unknown>;
  /** of a session: id, generation, call, restarted, reason, interrupted, reset */
  session?: Record<string, unknown>;
  /** of a session that was created */
  id?: string;
  /** of a stream: how many there were */
  items?: number;
  /** reason, and signal, limit, limit_value, hint if known */
  termination?: Record<string, unknown>;
  /** jail, warm, traits */
  isolation?: Record<string, unknown>;
  /** queue_ms, start_ms, run_ms, collect_ms, total_ms */
  timings?: Record<string, unknown>;
}

export interface FunctionSync {
  /** meta.callId of a call with a mount whose changes were not written back */
  callId: string;
  /** when one file cannot be written back; as in options.mount.sync */
  onError?: "continue" | "abort" | "rollback";
  /** a rule may end the sync; as in options.mount.sync */
  allowAbort?: boolean;
  /** in place of those of the call */
  rules?: SyncRule[];
}

export interface Health {
  /** ok, healthy where there is a control plane, or unhealthy with 503 */
  status: string;
  version?: string;
  /** name of the default jail */
  isolation?: string;
  /** if programs run without isolation */
  warning?: string;
  /** if it is full: artifacts are not kept */
  state_directory?: string;
  platform?: string;
  uptime_seconds?: number;
  active_executions?: number;
  /** of what is wrong */
  reason?: string;
  /** the same where older clients look */
  detail?: unknown;
}

export interface Info {
  service?: string;
  version?: string;
  /** name of the default jail */
  isolation?: string;
  platform?: string;
  /** release */
  kernel?: string;
  machine?: string;
  workspace_path?: string;
  uptime_seconds?: number;
  active_executions?: number;
  queued_executions?: number;
  retained_executions?: number;
  /** name, version, available */
  languages?: (Record<string, unknown>)[];
}

export interface InspectRequest {
  /** python, javascript (js), ruby, php, c or cpp (c++) */
  language: string;
  /** source text, at most 8 MiB; parsed, never run */
  code: string;
}

export interface Inspection {
  language?: string;
  /** name, signature, schema */
  functions?: (Record<string, unknown>)[];
  /** all could be read */
  complete?: boolean;
  /** what could not be read */
  issues?: (Record<string, unknown>)[];
}

export interface Mount {
  /** path inside to directory of the host */
  dirs?: Record<string, string>;
  loading?: MountLoading;
  sync?: MountSync;
  permissions?: Permissions;
  security?: MountSecurity;
  /** virtual: reported; throw: the call fails; ignore: not even reported */
  onPermissionDenied?: "virtual" | "throw" | "ignore";
}

export interface MountLoading {
  /** eager: all files are copied in; lazy: when they are opened; explicit: those of include */
  mode?: "eager" | "lazy" | "explicit";
  /** which files, as globs */
  include?: string[];
  /** bytes of one file */
  maxFileSize?: number;
  /** bytes of all files */
  maxTotalSize?: number;
}

export interface MountSecurity {
  /** links that lead to places inside the mount */
  followSymlinks?: boolean | unknown;
}

export interface MountSync {
  /** batch: changes go back when the call has ended; manual: when they are asked for */
  mode?: "manual" | "batch";
  /** when one file cannot be written back */
  onError?: "continue" | "abort" | "rollback";
  /** a rule may end the sync; true */
  allowAbort?: boolean;
  /** the first whose pattern matches decides */
  rules?: SyncRule[];
}

export interface Network {
  /** none, allow: what `allow` names; public: everything at a public address but what `deny` names; host */
  mode?: string;
  /** hosts: example.com, *.example.com, example.com:5432, 10.1.0.0/16; or objects that name methods and ... */
  allow?: (string | { host: string; methods?: string[]; paths?: string[] })[];
  /** hosts that are not public after all */
  deny?: string[];
  /** of public: ports beside 80 and 443 */
  ports?: number[];
  /** both directions together; at most EGRESS_MB */
  bytes_max?: number;
  /** programs that know no proxy arrive, too; default true. Else ports 80 and 443 are theirs to listen at */
  transparent?: boolean;
}

export interface NetworkRow {
  /** as the program named it */
  host: string;
  port: number;
  /** allowed or denied */
  verdict: string;
  connections?: number;
  /** plain HTTP requests that were looked at */
  requests?: number;
  /** from the program */
  bytes_up?: number;
  /** to the program */
  bytes_down?: number;
  /** of one that was denied */
  reason?: string;
  /** what can be done about it */
  advice?: string;
}

export interface OpenApi {
  /** version */
  openapi: string;
  paths: Record<string, unknown>;
}

export interface PackageLists {
  /** requirements as in PEP 508 */
  python?: string[];
  /** names of npm, with or without a version */
  npm?: string[];
}

export interface PackageSet {
  /** null: it has none */
  name: string | null;
  /** made from its lists */
  id: string;
  state: "installing" | "ready" | "failed";
  /** UTC */
  created_at?: string;
  /** as asked for */
  python?: string[];
  /** as asked for */
  npm?: string[];
  /** name, version, kind (python or npm); transitive ones, too */
  installed?: (Record<string, unknown>)[];
  files?: number;
  bytes?: number;
  /** of one that failed: why, and the last lines of the installer */
  error?: string;
  /** while it is installed: elapsed_ms, downloaded_bytes, files, output */
  progress?: Record<string, unknown>;
}

export interface PackageSetCreate {
  /** to ask for it by; a set without one is found by its lists */
  name?: string;
  /** requirements as in PEP 508: requests, numpy>=1.26 */
  python?: string[];
  /** names of npm, with or without a version: lodash, @scope/name@^1.0 */
  npm?: string[];
}

export interface PackageSets {
  /** those there are */
  packages: PackageSet[];
}

export interface PathRequest {
  /** in the sandbox; relative to its workspace */
  path: string;
}

export interface PermissionDefaults {
  /** true */
  read?: boolean;
  /** true */
  list?: boolean;
  /** false */
  create?: boolean;
  /** false */
  modify?: boolean;
  /** false */
  delete?: boolean;
}

export interface PermissionRule {
  /** which files, as a glob */
  pattern: string;
  /** operations, or * */
  allow?: unknown | ("read" | "list" | "create" | "modify" | "delete")[];
  /** operations, or * */
  deny?: unknown | ("read" | "list" | "create" | "modify" | "delete")[];
  /** the highest is looked at first; 0 */
  priority?: number;
}

export interface Permissions {
  default?: PermissionDefaults;
  /** the first that matches */
  rules?: PermissionRule[];
  /** globs of what is not there at all */
  exclude?: string[];
}

export interface PortBound {
  message?: string;
  port?: string;
  /** where it can be reached, of a named sandbox */
  proxy_port?: number;
  /** of a conflict */
  current_port?: string;
  error?: string;
  success: boolean;
}

export interface PortRequest {
  /** inside; a number as text */
  port: string;
}

export interface Problem {
  /** a stable name, such as Executor.ValidationError */
  error_code: string;
  /** what kind of problem it is */
  description: string;
  /** what it is about */
  error_detail?: string | null;
  /** what may help; may be null */
  solution?: string | null;
  /** as in the X-Request-Id header */
  request_id: string;
  /** for validation errors a list of {type, loc, msg} */
  detail?: unknown;
}

export interface Process {
  command?: string;
  id: string;
  /** inside */
  pid?: number;
  /** running, completed, failed, killed */
  status: string;
  /** null while it runs */
  exit_code?: number | null;
  /** RFC 3339 */
  started_at?: string;
  /** null while it runs */
  completed_at?: string | null;
}

export interface ProcessKilled {
  success: boolean;
  message?: string;
  /** why not */
  error?: string;
}

export interface ProcessRequest {
  /** of a process */
  id: string;
}

export interface ProcessSignal {
  /** SIGTERM, SIGKILL, SIGINT, ... or its number as a text */
  signal: string;
  /** the process and its group (default), or the process alone */
  to?: "group" | "process";
}

export interface ProcessStart {
  /** text for /bin/sh; either this or argv */
  command?: string;
  /** a program and its arguments; a name without a slash is looked for in PATH */
  argv?: string[];
  /** default: where commands of the sandbox begin; relative: below that */
  cwd?: string;
  /** variables of this process, over those of the sandbox */
  env?: Record<string, string>;
  /** a name of your own to find it by */
  tag?: string;
  /** keep standard input open, to be written later; default false: it is empty */
  stdin?: boolean;
  terminal?: TerminalSize;
  /** seconds after which it and everything it started is killed; default 0: never */
  timeout?: number;
}

export interface ProcessStarted {
  id: string;
  /** inside */
  pid?: number;
  /** running, completed, failed, killed */
  status?: string;
  /** why not */
  error?: string;
}

export interface Processes {
  /** in the order of their start */
  processes: Process[];
}

export interface Root {
  /** sandbox-executor */
  service: string;
  version: string;
  /** path of the console; null: there is none */
  console?: string | null;
  /** path of this documentation */
  docs?: string;
  /** path */
  health?: string;
  /** path */
  execute?: string;
  /** path */
  openapi?: string;
}

export interface Sandbox {
  id: string;
  name: string;
  /** running, paused or ending */
  state: string;
  /** UTC */
  created_at?: string;
  /** seconds without a request; 0: never */
  timeout?: number;
  /** UTC; null: at no fixed time */
  ends_at?: string | null;
  /** delete or pause */
  on_end?: string;
  /** a request resumes it while it is paused */
  auto_resume?: boolean;
  template?: string | null;
  /** texts of its owner's own */
  metadata?: Record<string, unknown>;
  /** where commands begin, and HOME */
  home?: string;
  /** token, traffic_token, private_ports; of one that is made or asked for alone */
  access?: Record<string, unknown>;
  /** memory_mb, disk_mb, files, pids */
  limits?: Record<string, unknown>;
  /** name of its jail */
  isolation?: string;
  /** mode: none, allow, public or host; with allow or deny, ports, transparent and bytes_max */
  network?: Record<string, unknown>;
  /** names of variables */
  env?: string[];
  bound_port?: string | null;
  proxy_port?: number | null;
  /** running, kept */
  processes?: Record<string, unknown>;
  /** directories; of one that is asked for alone */
  writable?: string[];
  /** cpu_ms, memory_bytes, memory_peak_bytes, oom_kills, pids, disk_bytes */
  usage?: Record<string, unknown>;
}

export interface SandboxCreate {
  /** a name of your own, to find it again */
  name?: string;
  /** name of a jail that ISOLATION allows, default the first of them */
  isolation?: string;
  /** environment variables of every command */
  env?: Record<string, string>;
  limits?: SandboxLimits;
  /** what its programs may reach: none, or by the rules of a Network as far as EGRESS permits; host only ... */
  network?: "none" | "public" | "host" | Network;
  /** name of a set of packages, or its lists */
  packages?: string | PackageLists;
  /** seconds without a request after which it is deleted; 0: never */
  timeout?: number;
  /** seconds after which its life ends, whatever happens in it; 0: never */
  lifetime?: number;
  /** what happens then, default delete */
  on_end?: "delete" | "pause";
  /** a request to it resumes it while it is paused */
  auto_resume?: boolean;
  /** texts of your own, to find it by */
  metadata?: Record<string, string>;
  /** base, code-interpreter-v1 or one of SANDBOX_TEMPLATES */
  template?: string;
  /** where commands begin, and HOME; default /workspace */
  home?: "/workspace" | "/home/user";
  /** its ports are open only to who has its traffic token */
  private_ports?: boolean;
}

export interface SandboxLifetime {
  /** seconds from now after which its life ends; 0: never */
  lifetime: number;
}

export interface SandboxLimits {
  /** MiB of memory */
  memory_mb?: number;
  /** MiB of disk */
  disk_mb?: number;
  /** files and directories */
  files?: number;
  /** processes and threads */
  pids?: number;
}

export interface SandboxNetwork {
  /** none, allow, public or host */
  mode: string;
  /** of mode allow: hosts, or objects with methods and paths */
  allow?: unknown[];
  /** of mode public */
  deny?: string[];
  /** of mode public */
  ports?: number[];
  transparent?: boolean;
  bytes_max?: number;
  /** what was reached and what was refused so far */
  network: NetworkRow[];
  /** connections to hosts beyond the first 64 */
  network_left_out?: number;
}

export interface SandboxProcess {
  /** its number inside */
  pid: number;
  id: string;
  /** a name of its owner's own */
  tag?: string | null;
  /** the text, or the program */
  command?: string;
  /** cmd, args, envs, cwd as asked for */
  config?: Record<string, unknown> | null;
  /** columns, rows; null: none */
  terminal?: Record<string, unknown> | null;
  /** running, completed, failed or killed */
  status: string;
  /** -1: by a signal or a limit; null: it runs */
  exit_code?: number | null;
  /** exit, signal, timeout, oom, cancelled, ...; null: it runs */
  reason?: string | null;
  /** that ended it; null: none */
  signal?: number | null;
  /** UTC */
  started_at?: string;
  /** UTC; null: it runs */
  ended_at?: string | null;
  /** from: number of the oldest byte that is kept; bytes: how many there were; closed */
  output?: Record<string, unknown>;
}

export interface SandboxProcesses {
  /** in the order of their start */
  processes: SandboxProcess[];
}

export interface Sandboxes {
  /** those there are */
  sandboxes: Sandbox[];
  /** for `after`; null: there are no more */
  next?: number | null;
}

export interface Session {
  id: string;
  language?: string | null;
  engine?: "native" | "wasm";
  /** name of its jail */
  isolation?: string | null;
  /** down: there is no process until the next call */
  state: "loading" | "idle" | "busy" | "collecting" | "stopping" | "down";
  /** UTC */
  createdAt?: string;
  /** processes so far */
  generation?: number;
  /** begun so far */
  calls?: number;
  /** calls that wait */
  queued?: number;
  /** of a call that names none */
  timeout?: number;
  /** 0: never */
  idleTimeout?: number;
  /** seconds, while it rests */
  idleFor?: number;
  /** why its state was lost, until a call has told */
  lost?: string;
  /** memoryMb, workspaceMb, pids, outputBytes, resultBytes, queue */
  limits?: Record<string, unknown>;
  /** cpuMs, memoryPeakBytes */
  usage?: Record<string, unknown>;
}

export interface SessionCall {
  /** which function */
  functionName: string;
  /** by position, by name, or {index, value} */
  args?: unknown[] | Record<string, unknown>;
  /** by name */
  kwargs?: Record<string, unknown>;
  /** input, output, strict, variadic, acceptsKwargs */
  schema?: Record<string, unknown>;
  /** seconds of wall time */
  timeout?: number;
  options?: SessionCallOptions;
}

export interface SessionCallOptions {
  /** path to text, or to {base64}; there before the call */
  files?: Record<string, string | { base64: string }>;
  reporting?: FunctionReporting;
}

export interface SessionCreate {
  /** python, javascript, ruby, php, c, cpp, perl; or an alias */
  language: string;
  /** source text */
  code: string;
  /** what runs it; native */
  engine?: "native" | "wasm";
  /** name of another jail that is allowed */
  isolation?: string;
  /** name of a set of packages, or its lists; installed first */
  packages?: string | PackageLists;
  /** seconds for loading the code, and for each call that names none */
  timeout?: number;
  /** seconds without a call after which it is deleted; 0: never */
  idleTimeout?: number;
  options?: FunctionOptions;
}

export interface SessionReset {
  /** soft, module: the code once more; hard, context: another process */
  level?: "soft" | "module" | "hard" | "context";
}

export interface Sessions {
  /** those there are */
  sessions: Session[];
}

export interface SyncReport {
  /** paths written back */
  synced?: string[];
  /** path and error */
  failed?: (Record<string, unknown>)[];
  /** paths */
  skipped?: string[];
  /** what was written was undone */
  rolledBack?: boolean;
  /** a rule ended it */
  aborted?: boolean;
  /** what happened, in order */
  events?: (Record<string, unknown>)[];
}

export interface SyncRule {
  /** which files, as a glob */
  pattern: string;
  /** what happens to them */
  state?: "continue" | "skip" | "abort";
}

export interface TerminalSize {
  /** of the terminal */
  columns: number;
  /** of the terminal */
  rows: number;
}

export interface ToolBundle {
  /** its name */
  bundle: string;
  /** from 1 on */
  version: number;
  /** of its source text */
  language?: string;
  /** of its source text */
  sha256?: string;
  /** when this version was published */
  created_at?: string;
  /** the interface it was published through: rest or mcp */
  by?: string;
  /** seconds of a call */
  timeout?: number;
  /** name, title, description, inputSchema, annotations, as in tools/list */
  tools: (Record<string, unknown>)[];
  /** functions that were left out, and what their users will miss */
  warnings?: string[];
  /** its source text, if that was asked for */
  code?: string;
}

export interface ToolCall {
  /** its name */
  tool: string;
  /** by name */
  arguments?: Record<string, unknown>;
}

export interface ToolCalls {
  /** the run, as its result names it under io.sandbox-executor/run */
  execution_id: string;
  /** tool, ms, ok, bytes_in, bytes_out, arguments, answer */
  tool_calls: (Record<string, unknown>)[];
}

export interface Tools {
  /** name, version, language, sha256, created_at, by, tools (names) */
  bundles: (Record<string, unknown>)[];
  /** all of them by name, as in tools/list */
  tools: (Record<string, unknown>)[];
}

export interface ToolsPublish {
  /** python, javascript (js), ruby, php, c or cpp (c++) */
  language: string;
  /** source text; its public functions become tools, with their docstrings and annotations */
  code: string;
  /** only these functions */
  include?: string[];
  /** not these functions */
  exclude?: string[];
  /** in front of each tool's name */
  prefix?: string;
  /** environment variables of each call */
  env?: Record<string, string>;
  /** seconds of a call; 30 */
  timeout?: number;
  /** memory of a call, at most what is configured */
  memory_mb?: number;
  /** the version that it replaces, 0 for none; another one is answered with 409 */
  expected_version?: number;
}

export interface ToolsRestore {
  /** one of those that are kept */
  version: number;
}

export interface Workspace {
  /** null: not known until the session is used again */
  session_id: string | null;
  /** on disk, when it was measured; null: never yet */
  bytes: number | null;
  /** files and directories in it, the same */
  files: number | null;
  /** UTC; after each execution, and for each GET of it alone */
  measured_at?: string | null;
  /** UTC */
  created_at: string;
  /** UTC: when an execution of the session began or ended */
  last_used_at: string;
  /** an execution of the session is running or waiting */
  in_use: boolean;
}

export interface Workspaces {
  /** the newest first */
  workspaces: Workspace[];
  /** `cursor` of the next page; null: there is none */
  next?: string | null;
}
