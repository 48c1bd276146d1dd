# SPDX-License-Identifier: MIT
"""Ruby, PHP and Perl that were started ahead: the same as one that starts for its call, only sooner."""
import re

import harness
import pytest

RB, PHP, PL = "ruby", "php", "perl"
# Everything a program can see of how it was started.
LOOK = {
    RB: """
require 'etc'
def f(x)
  { 'x' => x, 'cwd' => Dir.pwd, 'env' => ENV.to_h, 'argv' => ARGV, 'name' => $PROGRAM_NAME,
    'files' => Dir.children('.').sort, 'nofile' => Process.getrlimit(:NOFILE), 'fsize' => Process.getrlimit(:FSIZE),
    'nproc' => Process.getrlimit(:NPROC), 'methods' => Object.private_instance_methods(false).sort.map(&:to_s),
    'random' => rand.to_s + Random.bytes(8).unpack1('H*'), 'children' => (Process.wait rescue $!.class.name),
    'fds' => Dir.children('/proc/self/fd').size, 'encoding' => Encoding.default_external.name, 'path' => $LOAD_PATH }
end
""",
    PHP: """
function f($x) {
    $fds = array_values(array_diff(scandir('/proc/self/fd'), ['.', '..']));
    return ['x' => $x, 'cwd' => getcwd(), 'env' => getenv(), 'server' => array_intersect_key($_SERVER, getenv()),
        'argc' => $_SERVER['argc'], 'files' => array_values(array_diff(scandir('.'), ['.', '..'])),
        'limits' => preg_grep('/open files|file size|processes/', file('/proc/self/limits')),
        'random' => bin2hex(random_bytes(8)) . mt_rand(), 'functions' => get_defined_functions()['user'],
        'fds' => $fds, 'late' => time() - $_SERVER['REQUEST_TIME'] < 5];
}
""",
    PL: r"""
sub f {
    my ($x) = @_;
    opendir(my $d, '.');
    my @files = sort grep { !/^\.\.?$/ } readdir($d);
    opendir(my $e, '/proc/self/fd');
    my @fds = readdir($e);
    open(my $l, '<', '/proc/self/limits');
    my @limits = grep { /open files|file size|processes/ } <$l>;
    open(my $r, '<:raw', '/dev/urandom');
    read($r, my $bytes, 8);
    require Cwd;
    return {x => $x, cwd => Cwd::getcwd(), env => {%ENV}, argv => [@ARGV], name => $0, files => \@files,
            limits => \@limits, fds => scalar @fds, random => rand() . unpack('H*', $bytes),
            path => [@INC], children => wait(), late => time - $^T < 5 ? 1 : 0};
}
""",
}


@pytest.fixture(scope="module")
def daemon(make_daemon_module):
    return make_daemon_module()


@pytest.fixture(scope="module")
def cold(make_daemon_module):
    return make_daemon_module(POOL_SCRIPTS="0")


def ready(daemon, language):
    text = daemon.request("GET", "/metrics").text
    found = re.search(rf'^sandbox_pool{{template="{language}",state="ready"}} (\d+)', text, re.M)
    return int(found.group(1)) if found else 0


def call(daemon, language, code=None, *args, **fields):
    response = daemon.request("POST", "/v1/functions/call", json={
        "language": language, "code": code or LOOK[language], "functionName": "f", "args": list(args), **fields})
    return response.json()


def warmed(daemon, language):
    """Asks once, which makes the daemon prepare some, and waits until they are there."""
    call(daemon, language, None, 1)
    harness.wait_until(lambda: ready(daemon, language) >= 1, lambda: daemon.request("GET", "/metrics").text)


@pytest.mark.parametrize("language", [RB, PHP, PL])
def test_it_sees_what_one_sees_that_starts_for_the_call(daemon, cold, language):
    warmed(daemon, language)
    options = {"files": {"a": "1"}, "env": {"MINE": "ü=1", "HOME": "/tmp"}}
    ahead = call(daemon, language, None, [1, "zwölf"], options=options)
    usual = call(cold, language, None, [1, "zwölf"], options=options)
    assert ahead["status"] == usual["status"] == "success", (ahead, usual)
    assert ahead["isolation"]["warm"]
    random = {ahead["result"].pop("random"), usual["result"].pop("random")}
    assert len(random) == 2
    assert ahead["result"] == usual["result"]
    assert ahead["files"] == usual["files"] and ahead["stdout"] == usual["stdout"] == ""


@pytest.mark.parametrize("language", [RB, PHP, PL])
def test_no_two_calls_share_one(daemon, language):
    warmed(daemon, language)
    assert len({call(daemon, language, None, 1)["result"]["random"] for _ in range(8)}) == 8


@pytest.mark.parametrize("language, name", [(RB, "RUBYOPT"), (PHP, "PHPRC"), (RB, "LC_ALL"), (PHP, "TZ"),
                                            (PL, "PERL5LIB")])
def test_variables_that_count_at_the_start_are_there_then(daemon, language, name):
    warmed(daemon, language)
    before = ready(daemon, language)
    got = call(daemon, language, None, 1, options={"env": {name: "C" if name == "LC_ALL" else ""}})
    assert got["status"] == "success" and got["result"]["env"][name] in ("", "C")
    assert ready(daemon, language) >= before


@pytest.mark.parametrize("language, code", [
    (RB, "def f\n  raise ArgumentError, 'no'\nend"), (PHP, "function f() {\n    throw new RuntimeException('no');\n}"),
    (PL, "sub f {\n    die 'no'\n}")])
def test_errors_are_its_own(daemon, cold, language, code):
    warmed(daemon, language)
    ahead, usual = call(daemon, language, code), call(cold, language, code)
    assert ahead["error"] == usual["error"] and ahead["exitCode"] == usual["exitCode"]


@pytest.mark.parametrize("language, code, status", [
    (RB, "def f = exit(3)", 3), (PHP, "function f() { exit(3); }", 3), (PL, "sub f { exit 3 }", 3)])
def test_its_exit_is_the_programs(daemon, language, code, status):
    warmed(daemon, language)
    got = call(daemon, language, code)
    assert got["status"] == "error" and got["exitCode"] == status


@pytest.mark.parametrize("language, code", [(RB, "def f = Process.kill(:KILL, $$)"),
                                            (PHP, "function f() { while (true) {} }"), (PL, "sub f { 1 while 1 }")])
def test_it_can_be_killed(daemon, language, code):
    warmed(daemon, language)
    got = call(daemon, language, code, timeout=0.5)
    assert got["status"] == ("crash" if language == RB else "timeout")


def test_a_file_limit_holds(make_daemon):
    daemon = make_daemon(WORKSPACE_MB="2")
    warmed(daemon, RB)
    got = call(daemon, RB, "def f = File.write('a', 'x' * (4 << 20))")
    assert got["status"] == "error" and got["error"]["type"] in ("Errno::ENOSPC", "Errno::EFBIG")
