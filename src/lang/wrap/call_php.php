// SPDX-License-Identifier: MIT
/*
 * Calls functions of a PHP program: one, or in a session many.
 *
 * The job comes as frames over descriptor 3 and the returned value leaves the same way. The event
 * says what to call and where the arguments are: in the event as a literal (inline) or as JSON, on
 * standard input as a SIP packet, or in a file. PHP wants a program in a file: it is one for as
 * long as it is loaded.
 */
namespace SandboxCall;

const HEAD = 9;
const DEPTH = 1024;
const STACK_MAX = 64 * 1024;
const MESSAGE_MAX = 16 * 1024;
const ANONYMOUS = '__anonymous_wrapper__';
/* In WebAssembly the channel has a name, because descriptors cannot be opened there. */
const CHANNEL = '/dev/channel';
const ME = \PHP_SAPI === 'cli' ? 'Command line code' : __FILE__;

\error_reporting(E_ALL);
\ini_set('display_errors', \PHP_SAPI === 'cli' ? 'stderr' : '0');
\ini_set('log_errors', \PHP_SAPI === 'cli' ? '0' : '1'); // the other one's way to stderr
\ini_set('html_errors', '0');
\ini_set('memory_limit', '-1');
\ini_set('serialize_precision', '-1');
\ini_set('zend.exception_ignore_args', '1');

/* Without the host's configuration extensions are not loaded. These are what programs expect, but
   all of them take as long as the rest of a small call: a program that is nothing but its own text
   gets those that the text mentions. */
function extend(string $code): void
{
    $isMore = \preg_match('/include|require|eval|function_exists|extension|\$\w+\s*\(/i', $code);
    foreach (['ctype' => 'ctype_', 'mbstring' => 'mb_', 'iconv' => 'iconv', 'tokenizer' => 'token'] as $name => $word) {
        if (($isMore || \stripos($code, $word) !== false) && !\extension_loaded($name)) {
            @\dl("$name.so");
        }
    }
}

// ---- the channel ----

function channel()
{
    static $stream = null;
    return $stream ??= \fopen(\PHP_SAPI === 'cli' ? 'php://fd/3' : CHANNEL, 'r+b');
}

function readExactly($stream, int $n): string
{
    $data = '';
    while (\strlen($data) < $n) {
        $chunk = \fread($stream, \min($n - \strlen($data), 1 << 20));
        if ($chunk === false || $chunk === '') {
            throw new \RuntimeException('the packet is not complete');
        }
        $data .= $chunk;
    }
    return $data;
}

function send(string $kind, string $payload): void
{
    $data = $kind . \sprintf('%08x', \strlen($payload)) . $payload;
    for ($at = 0; $at < \strlen($data);) {
        $n = \fwrite(channel(), $at === 0 ? $data : \substr($data, $at));
        if ($n === false) {
            return;
        }
        $at += $n;
    }
    \fflush(channel());
}

/* All frames up to G, by kind. */
function receive(): array
{
    $frames = [];
    do {
        $head = readExactly(channel(), HEAD);
        $frames[$head[0]] = readExactly(channel(), \hexdec(\substr($head, 1)));
    } while ($head[0] !== 'G');
    return $frames;
}

/* In WebAssembly the interpreter has started long before its job came. */
function settle(array $setting): void
{
    foreach (['STDIN' => 'r', 'STDOUT' => 'w', 'STDERR' => 'w'] as $name => $mode) {
        \define($name, \fopen('/dev/' . \strtolower($name), $mode));
    }
    foreach ($setting['env'] as $pair) {
        \putenv($pair);
        [$name, $value] = \explode('=', $pair, 2);
        $_SERVER[$name] = $_ENV[$name] = $value;
    }
    \chdir($setting['cwd']);
}

/* Started ahead: where, and with which variables, comes when there is a job; nothing: there is none. */
function hold(): void
{
    $hold = \fopen($GLOBALS['argv'][2], 'rb');
    $text = \stream_get_contents($hold);
    \fclose($hold);
    if ($text === '' || $text === false) {
        exit(126);
    }
    $parts = \explode("\0", \substr($text, 0, -1));
    $cwd = \array_shift($parts);
    foreach (\array_keys(\getenv()) as $name) {
        \putenv($name);
        unset($_SERVER[$name], $_ENV[$name]);
    }
    foreach ($parts as $pair) {
        \putenv($pair);
        [$name, $value] = \explode('=', $pair, 2);
        $_SERVER[$name] = $_ENV[$name] = $value;
    }
    $_SERVER['REQUEST_TIME_FLOAT'] = \microtime(true);
    $_SERVER['REQUEST_TIME'] = (int) $_SERVER['REQUEST_TIME_FLOAT'];
    $_SERVER['argv'] = $GLOBALS['argv'] = [$GLOBALS['argv'][0]];
    $_SERVER['argc'] = $GLOBALS['argc'] = 1;
    \chdir($cwd);
}

// ---- arguments ----

function decode(string $text)
{
    return \json_decode($text, true, DEPTH, JSON_THROW_ON_ERROR);
}

function arguments(array $event): array
{
    if ($event['mode'] === 'stdin') {
        $head = readExactly(STDIN, HEAD);
        $given = decode(readExactly(STDIN, \hexdec(\substr($head, 1))));
    } elseif ($event['mode'] === 'file') {
        $given = decode(\file_get_contents($event['request']));
        \unlink($event['request']); // nothing of ours among the program's files
    } elseif (isset($event['literal'])) {
        [$args, $kwargs] = eval('return ' . $event['literal'] . ';');
        $given = ['args' => $args, 'kwargs' => $kwargs, 'holes' => $event['holes'] ?? []];
    } else {
        $given = $event['given'];
    }
    return [$given['args'], $given['kwargs'], $given['holes'] ?? []];
}

/* Positions behind a hole go by name, so that a default in the hole applies. What no parameter is
   named after becomes one last array, where there is a parameter left for it. */
function bind(\ReflectionFunctionAbstract $function, array $args, array $kwargs, array $holes): array
{
    $names = [];
    $options = null;
    foreach ($function->getParameters() as $i => $p) {
        if (\array_key_exists($i, $args) && $args[$i] === null && !$p->isVariadic() &&
            \array_key_exists($p->getName(), $kwargs)) {
            $holes[] = $i; // a null that is given by name, too
        }
    }
    foreach ($function->getParameters() as $i => $p) {
        if ($p->isVariadic()) {
            break;
        }
        $isGiven = $i < \count($args) && !\in_array($i, $holes, true);
        $names[$p->getName()] = true;
        if (!$isGiven && !\array_key_exists($p->getName(), $kwargs)) {
            $options ??= $p;
        }
    }
    $positional = [];
    $named = [];
    $parameters = $function->getParameters();
    foreach ($args as $i => $value) {
        if (\in_array($i, $holes, true)) {
            if (!isset($parameters[$i])) {
                $positional[] = null;
            }
        } elseif (\count($positional) === $i) {
            $positional[] = $value;
        } else {
            $named[isset($parameters[$i]) ? $parameters[$i]->getName() : $i] = $value;
        }
    }
    $unknown = $function->isVariadic() ? [] : \array_diff_key($kwargs, $names);
    $named += \array_diff_key($kwargs, $unknown);
    if ($unknown && $options !== null && takesArray($options)) {
        $named[$options->getName()] = $unknown;
    } else {
        $named += $unknown; // PHP says which one it does not know
    }
    foreach ($parameters as $i => $p) { // as many as possible by position
        if ($p->isVariadic() || $i !== \count($positional) ||
            !\array_key_exists($p->getName(), $named)) {
            break;
        }
        $positional[] = $named[$p->getName()];
        unset($named[$p->getName()]);
    }
    return [$positional, $named];
}

function takesArray(\ReflectionParameter $p): bool
{
    $type = $p->getType();
    if ($p->isDefaultValueAvailable() && \is_array($p->getDefaultValue())) {
        return true;
    }
    return $type === null ? \preg_match('/^(options?|opts?|config|props|params|kwargs)$/i', $p->getName()) === 1
        : \preg_match('/\b(array|iterable)\b/', (string) $type) === 1;
}

// ---- the program ----

function text(array $event): string
{
    $code = \preg_replace('/^\xEF\xBB\xBF/', '', $event['code']);
    $isOpen = \preg_match('/^\s*<\?php\b/', $code) === 1;
    if (empty($event['body'])) {
        return $isOpen ? $code : "<?php $code";
    }
    $code = \preg_replace('/^(\s*)<\?php\b/', '$1', $code);
    return '<?php function ' . ANONYMOUS . "(...\$args) {{$code}\n}";
}

/* Where the program is; it is loaded by require outside of any function, so that its variables are
   global, and then let go. */
function place(array $event): string
{
    $file = \rtrim(\getcwd(), '/') . '/' . $event['file'];
    if (\file_put_contents($file, text($event)) === false) {
        throw new \RuntimeException("cannot write $file");
    }
    \set_include_path(\dirname($file) . ':' . \get_include_path());
    $_SERVER['argv'] = $GLOBALS['argv'] = [$file];
    return $file;
}

function letGo(array $event, string $file): void
{
    if (!isset($event['place'])) { // else it may be written, but not removed
        @\unlink($file);
    }
}

function find(string $name): \Closure
{
    $parts = \explode('::', \str_replace('.', '::', $name));
    if (\count($parts) === 2 && \is_callable($parts)) {
        return \Closure::fromCallable($parts);
    }
    if (\function_exists($name)) {
        return \Closure::fromCallable($name);
    }
    $variable = $GLOBALS[\ltrim($name, '$')] ?? null;
    if (!$variable instanceof \Closure) {
        throw new \Exception("Function '$name' not found");
    }
    return $variable;
}

// ---- values ----

/* Objects show what is public; iterators become lists. */
function plain($value, int $depth = 0)
{
    if ($depth > DEPTH - 2) {
        throw new \RuntimeException('the returned value is nested too deeply for JSON');
    }
    if (\is_array($value)) {
        foreach ($value as $k => $v) {
            if (\is_array($v) || \is_object($v) || \is_resource($v)) {
                $value[$k] = plain($v, $depth + 1);
            }
        }
        return $value;
    }
    if ($value instanceof \JsonSerializable || $value instanceof \UnitEnum) {
        return $value;
    }
    if ($value instanceof \Closure) {
        throw new \TypeError('a Closure is not JSON serializable');
    }
    if ($value instanceof \Traversable) {
        return plain(\iterator_to_array($value, !($value instanceof \Generator)), $depth + 1);
    }
    if (\is_object($value)) {
        $public = \get_object_vars($value);
        return $public ? (object) plain($public, $depth + 1) : $value; // dates tell only json_encode()
    }
    if (\is_resource($value)) {
        throw new \TypeError('a resource is not JSON serializable');
    }
    return $value;
}

function encode($value): string
{
    return \json_encode(plain($value), JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES |
        JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION, DEPTH);
}

function value($value, int $most): string
{
    $text = encode($value);
    if (\strlen($text) > $most) {
        throw new \RangeException('the returned value has ' . \strlen($text) .
            " bytes as JSON, at most $most are allowed");
    }
    return $text;
}

// ---- failing ----

function errorText(string $type, string $message, string $stack): string
{
    return \json_encode([
        'type' => $type, 'message' => \substr($message, 0, MESSAGE_MAX),
        'stack' => \substr($stack, 0, STACK_MAX),
    ], JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
}

function thrownText(\Throwable $e): string
{
    $lines = ["{$e->getFile()}:{$e->getLine()}"];
    foreach ($e->getTrace() as $frame) {
        $at = isset($frame['file']) ? "{$frame['file']}:{$frame['line']}" : '[internal]';
        if (\str_starts_with($frame['function'] ?? '', 'SandboxCall\\')) {
            if (!$e instanceof Interrupted) {
                break;
            }
            $lines[] = $at; // where the program was
            continue;
        }
        $lines[] = ($frame['class'] ?? '') . ($frame['type'] ?? '') . "{$frame['function']}() called at $at";
    }
    $lines = \array_filter($lines, fn ($line) => !\str_contains($line, ME));
    $me = \preg_quote(ME, '/');
    $message = \preg_replace(["/, called in $me.*/", "/ in $me on line \\d+/"], '', $e->getMessage());
    return errorText(\get_class($e), $message, \get_class($e) . ": $message\n    " .
        \implode("\n    ", $lines) . "\n");
}

// ---- a session ----

class Interrupted extends \Exception
{
}

/* Stays: reads packets from the channel (SIP, mode P) and answers each of them, beginning with the
   packet's token. SIGINT ends a call, and nothing else. */
class Session
{
    public static ?Session $it = null;
    public bool $awaited = true; // somebody waits for an answer
    private bool $busy = false;
    private string $token;
    private int $pid;

    public function __construct(private array $event)
    {
        $this->token = $event['token'];
        $this->pid = \getmypid();
        self::$it = $this;
    }

    public function answer(string $kind, string $payload = ''): void
    {
        if (\getmypid() !== $this->pid) {
            $this->awaited = false;
            exit(0); // a copy that the program made has nothing to tell
        }
        while (\ob_get_level() > 0) {
            \ob_end_flush();
        }
        \flush(); // php-cgi, which runs in WebAssembly, holds back what is printed
        $this->awaited = false;
        send($kind, $this->token . $payload);
    }

    private function read(int $n): string
    {
        $data = '';
        while (\strlen($data) < $n) {
            $chunk = \fread(channel(), \min($n - \strlen($data), 1 << 20));
            if ($chunk !== false && $chunk !== '') {
                $data .= $chunk;
            } elseif (\feof(channel())) {
                exit(0); // the daemon has let go
            }
        }
        return $data;
    }

    private function call(array $packet): string
    {
        $function = find($packet['functionName']);
        [$args, $names] = bind(new \ReflectionFunction($function), $packet['args'],
            $packet['kwargs'], $packet['holes'] ?? []);
        return value($function(...$args, ...$names), $this->event['resultMax']);
    }

    private function turn(array $packet): array
    {
        try {
            $this->busy = true;
            send('B', $this->token);
            $text = $this->call($packet);
            $this->busy = false;
            return ['R', $text];
        } catch (\Throwable $e) {
            $this->busy = false;
            return ['E', thrownText($e)];
        }
    }

    public function listen(): void
    {
        if (!\function_exists('pcntl_async_signals')) {
            return; // then SIGINT ends the process
        }
        \pcntl_async_signals(true);
        \pcntl_signal(SIGINT, function () {
            if ($this->busy) {
                throw new Interrupted('the call was interrupted');
            }
        });
    }

    public function fail(\Throwable $e): void
    {
        $this->answer('F', thrownText($e));
        exit(1);
    }

    public function serve(): void
    {
        $this->answer('Y');
        for (;;) {
            $head = $this->read(HEAD);
            $packet = decode($this->read(\hexdec(\substr($head, 1))));
            $this->token = $packet['token'];
            $this->awaited = true;
            try {
                [$kind, $text] = $this->turn($packet);
            } catch (Interrupted $e) { // when the call had just ended
                $this->busy = false;
                [$kind, $text] = ['E', thrownText($e)];
            }
            unset($packet);
            $this->answer($kind, $text);
        }
    }
}

/* A fatal error, or exit() in the program. */
function lastWords(): void
{
    $e = \error_get_last();
    if ($e !== null && ($e['type'] & (E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR |
        E_USER_ERROR))) {
        $text = errorText('FatalError', $e['message'], "{$e['file']}:{$e['line']}");
    } elseif (Session::$it !== null) {
        $text = errorText('ExitError', 'the program called exit()', '');
    } else {
        return;
    }
    if (Session::$it === null) {
        send('E', $text);
    } elseif (Session::$it->awaited) {
        Session::$it->answer('F', $text);
    }
}

/* Nobody returned. */
\register_shutdown_function(function () {
    global $sandboxCallDone;
    if (empty($sandboxCallDone)) {
        lastWords();
    }
});

/* What every call does, so that it is compiled and loaded before there is one. */
function rehearse(): void
{
    $event = decode('{"code":"function sandboxRehearsed($a) { return [$a]; }","given":{"args":[{"a":[1,2.5,"x",null]}],' .
        '"kwargs":{}},"mode":"inline"}');
    \preg_match('/^\s*<\?php\b/', text($event));
    [$args, $names, $holes] = arguments($event);
    $function = fn ($a) => [$a, \implode(',', \array_keys($a))];
    [$args, $names] = bind(new \ReflectionFunction($function), $args, $names, $holes);
    encode($function(...$args, ...$names));
}

if (\PHP_SAPI !== 'cli') {
    for ($sandboxCallName = 0; $sandboxCallName < 20; $sandboxCallName++) {
        rehearse();
    }
    if (\fread(\fopen('/dev/hold', 'rb'), 1) !== '') { // here it is copied
        rehearse();
    }
}

if (\PHP_SAPI === 'cli' && ($argv[1] ?? '') === 'hold') {
    rehearse();
    hold();
}

$sandboxCallDone = false;
try {
    $sandboxCallFrames = receive();
    if (isset($sandboxCallFrames['N'])) {
        settle(decode($sandboxCallFrames['N']));
    }
    $sandboxCallEvent = decode($sandboxCallFrames['V']);
    extend($sandboxCallEvent['code']);
    if ($sandboxCallEvent['mode'] === 'session') {
        (new Session($sandboxCallEvent))->listen();
    } else {
        [$sandboxCallArgs, $sandboxCallNames, $sandboxCallHoles] = arguments($sandboxCallEvent);
    }
    $sandboxCallFile = place($sandboxCallEvent);
    try {
        require $sandboxCallFile;
    } finally {
        letGo($sandboxCallEvent, $sandboxCallFile);
    }
    if (Session::$it !== null) {
        Session::$it->serve();
    }
    $sandboxCallFunction = find($sandboxCallEvent['function']);
    [$sandboxCallArgs, $sandboxCallNames] = bind(new \ReflectionFunction($sandboxCallFunction),
        $sandboxCallArgs, $sandboxCallNames, $sandboxCallHoles);
    send('R', value($sandboxCallFunction(...$sandboxCallArgs, ...$sandboxCallNames),
        $sandboxCallEvent['resultMax']));
    $sandboxCallDone = true;
} catch (\Throwable $sandboxCallError) {
    if (Session::$it !== null) {
        Session::$it->fail($sandboxCallError);
    }
    $sandboxCallDone = true;
    send('E', thrownText($sandboxCallError));
    exit(1);
}
