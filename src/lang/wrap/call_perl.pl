# SPDX-License-Identifier: MIT
#
# Calls one function of a Perl program.
#
# The job comes as frames over descriptor 3 and the returned value leaves the same way. The event
# says what to call and where the arguments are: in the event as a literal (inline) or as JSON, on
# standard input as a SIP packet, or in a file. Text is characters on the way in and out, and so is
# the program. There is a JSON parser here because loading one takes longer than starting Perl.
# For the same reason nothing else is loaded, `strict` included.
package SandboxCall;
BEGIN { ${^WARNING_BITS} = '' } # no warnings: what we use of 5.36 is called experimental

my $HEAD = 9;
my $DEPTH_MAX = 500;
my $STACK_MAX = 64 * 1024;
my $MESSAGE_MAX = 16 * 1024;
my $ANONYMOUS = '__anonymous_wrapper__';
my $ME = '-e';
my $EINTR = 4; # asking by name loads a module

open(my $channel, '+<&=', 3) or die "no channel: $!";
binmode($channel);
binmode($_, ':utf8') for *STDOUT, *STDERR;
$| = 1;

# ---- the channel ----

sub read_exactly {
    my ($from, $n) = @_;
    my $data = '';
    while (length($data) < $n) {
        my $got = sysread($from, $data, $n - length($data), length($data));
        next if !defined $got && $! == $EINTR;
        die "the packet is not complete\n" unless $got;
    }
    return $data;
}

sub send_frame {
    my ($kind, $payload) = @_;
    my $data = $kind . sprintf('%08x', length $payload) . $payload;
    my $at = 0;
    while ($at < length $data) {
        my $n = syswrite($channel, $data, length($data) - $at, $at);
        return unless defined $n || $! == $EINTR;
        $at += $n // 0;
    }
}

# All frames up to G, by kind.
sub receive {
    my %frames;
    for (;;) {
        my $head = read_exactly($channel, $HEAD);
        my $kind = substr($head, 0, 1);
        $frames{$kind} = read_exactly($channel, hex(substr($head, 1)));
        return \%frames if $kind eq 'G';
    }
}

# ---- JSON ----

my %escapes = (b => "\b", f => "\f", n => "\n", r => "\r", t => "\t");

# The text is in $_, the place is pos(). The sender has checked it, so nothing is checked here.
sub decode_string {
    my $text = '';
    /\G"/gc;
    until (/\G"/gc) {
        if (/\G([^"\\]++)/gc) {
            $text .= $1;
        } elsif (/\G\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)/gc) {
            $text .= chr(0x10000 + ((hex($1) - 0xd800) << 10) + hex($2) - 0xdc00);
        } elsif (/\G\\u(....)/gc) {
            $text .= chr(hex $1);
        } elsif (/\G\\(.)/gcs) {
            $text .= $escapes{$1} // $1;
        } else {
            die "the packet is not JSON\n";
        }
    }
    return $text;
}

sub decode_value {
    /\G[ \t\r\n]++/gc;
    if (/\G(-?\d[\d.eE+-]*+)/gc) {
        return $1 + 0;
    } elsif (/\G(?=")/gc) {
        return decode_string();
    } elsif (/\G\[[ \t\r\n]*+/gc) {
        my @list;
        until (/\G\]/gc) {
            push @list, decode_value();
            /\G[ \t\r\n]*+,?[ \t\r\n]*+/gc;
        }
        return \@list;
    } elsif (/\G\{[ \t\r\n]*+/gc) {
        my %map;
        until (/\G\}/gc) {
            my $key = decode_string();
            /\G[ \t\r\n]*+:/gc;
            $map{$key} = decode_value();
            /\G[ \t\r\n]*+,?[ \t\r\n]*+/gc;
        }
        return \%map;
    }
    return /\Gtrue/gc ? !!1 : /\Gfalse/gc ? !!0 : /\Gnull/gc ? undef : die "the packet is not JSON\n";
}

sub decode {
    local ($_) = @_;
    utf8::decode($_);
    pos() = 0;
    return scalar decode_value();
}

sub encode_string {
    my ($text) = @_;
    $text =~ s/(["\\\x00-\x1f\x7f\x{d800}-\x{dfff}])/sprintf('\\u%04x', ord $1)/ge;
    utf8::encode($text);
    return qq("$text");
}

sub encode_number {
    my ($n) = @_;
    die "NaN and infinities are not JSON serializable\n" if $n != $n || $n == 9**9**9 || $n == -9**9**9;
    my $text = "$n";
    if ($text !~ /\A-?\d+\z/) {
        for my $digits (15, 16, 17) {
            $text = sprintf("%.${digits}g", $n);
            last if $text == $n;
        }
    }
    return $text;
}

# Since 5.36.
my ($created_as_number, $is_bool) = map { defined &$_ ? \&$_ : undef }
    'builtin::created_as_number', 'builtin::is_bool';

sub is_number {
    my ($value) = @_;
    return $created_as_number->($value) if $created_as_number;
    return length((my $empty = '') & $value) > 0; # "&" knows what a number is
}

# What JSON has no word for becomes what comes closest, or an error.
sub encode_value {
    my ($value, $above) = @_;
    return 'null' unless defined $value;
    my $kind = ref $value;
    if (!$kind) {
        return $value ? 'true' : 'false' if $is_bool && $is_bool->($value);
        return is_number($value) ? encode_number($value) : encode_string($value);
    }
    die "the returned value is nested too deeply, or contains itself\n" if $above > $DEPTH_MAX;
    if (my $method = eval { $value->can('TO_JSON') }) {
        return encode_value(scalar($value->$method), $above + 1);
    }
    return $value ? 'true' : 'false' if $kind eq 'JSON::PP::Boolean';
    return "$value" if $kind =~ /\AMath::Big/ && "$value" =~ /\A-?\d+(?:\.\d+)?\z/;
    my $is_object = !grep { $kind eq $_ } qw(HASH ARRAY SCALAR CODE REF GLOB Regexp);
    if ($kind eq 'HASH' || $is_object && "$value" =~ /\A.*=HASH\(0x[0-9a-f]+\)\z/s) {
        my @names = grep { !$is_object || !/\A_/ } sort keys %$value;
        return '{' . join(',', map { encode_string($_) . ':' . encode_value($value->{$_}, $above + 1) } @names) . '}';
    }
    if ($kind eq 'ARRAY' || $is_object && "$value" =~ /\A.*=ARRAY\(0x[0-9a-f]+\)\z/s) {
        return '[' . join(',', map { encode_value($_, $above + 1) } @$value) . ']';
    }
    return $$value ? 'true' : 'false' if $kind eq 'SCALAR' && defined $$value && $$value =~ /\A[01]\z/;
    return encode_string("$value") if $kind eq 'Regexp' || $is_object && "$value" !~ /\(0x[0-9a-f]+\)\z/;
    die "a reference to $kind is not JSON serializable\n";
}

# ---- arguments ----

sub read_file {
    my ($path) = @_;
    open(my $f, '<:raw', $path) or die "$path: $!\n";
    local $/;
    my $text = <$f>;
    close($f);
    unlink($path); # nothing of ours among the program's files
    return decode($text);
}

sub arguments {
    my ($event) = @_;
    my $mode = $event->{mode};
    if (exists $event->{literal}) {
        my $given = eval "package main; $event->{literal}";
        return (@$given, $event->{holes} // []);
    }
    my $given = $event->{given};
    $given = decode(read_exactly(*STDIN, hex(substr(read_exactly(*STDIN, $HEAD), 1)))) if $mode eq 'stdin';
    $given = read_file($event->{request}) if $mode eq 'file';
    return ($given->{args}, $given->{kwargs}, $given->{holes} // []);
}

# The names of a signature, as Perl itself compiled it; none without a signature.
sub parameters {
    my ($function) = @_;
    require B;
    my $cv = B::svref_2object($function);
    my ($names, @found) = $cv->PADLIST->ARRAYelt(0);
    my $walk;
    $walk = sub {
        my ($op) = @_;
        return unless $$op;
        push @found, $names->ARRAYelt($op->targ)->PV if $op->name eq 'argelem';
        if ($op->flags & B::OPf_KIDS()) {
            for (my $kid = $op->first; $$kid; $kid = $kid->sibling) { $walk->($kid) }
        }
    };
    $walk->($cv->ROOT) if $cv->can('ROOT') && ref $cv->ROOT ne 'B::NULL';
    return @found;
}

# Names find the parameters of a signature; what is left is a list of pairs, as Perl does it.
sub bind_names {
    my ($function, $args, $kwargs, $holes) = @_;
    my @args = @$args;
    my %given = %$kwargs;
    my %hole = map { $_ => 1 } @$holes;
    if (%given || %hole) {
        my @names = parameters($function);
        for my $i (0 .. $#names) {
            my ($name) = $names[$i] =~ /\A\$(.*)/ or last;
            if (($i >= @args || $hole{$i} || !defined $args[$i]) && exists $given{$name}) {
                $hole{$_} = 1 for scalar(@args) .. $i - 1;
                $args[$i] = delete $given{$name};
                delete $hole{$i};
            }
        }
        for my $i (sort { $a <=> $b } keys %hole) {
            my $name = $names[$i] // next; # without a signature: undef
            die "Perl cannot leave out '$name' while a later argument is given\n" if $i < $#args;
        }
    }
    return (@args, map { $_ => $given{$_} } sort keys %given);
}

# ---- the program ----

our $started;

# A name in the working directory; asking Cwd would load it.
sub whole {
    my ($name) = @_;
    my $cwd = readlink('/proc/self/cwd') // '';
    return ($cwd eq '/' ? '' : $cwd) . "/$name";
}

# Compiles and runs text as the program's own, with its own lines.
sub run_text {
    my ($event, $before, $text, $after) = @_;
    local $started = 0;
    my $file = whole($event->{file}) =~ s/["\n]/_/gr;
    my $code = "package main; BEGIN { \$^H = 0; \${^WARNING_BITS} = undef; %^H = (); } " .
        "\$SandboxCall::started = 1; $before\n#line 1 \"$file\"\n$text\n;$after";
    my $done = eval "$code; 1";
    return if $done;
    die SandboxCall::SyntaxError->new($@) unless $started || ref $@;
    die $@;
}

sub defined_subs {
    return map { $_ => 1 } grep { !/::\z/ && defined &{"main::$_"} } keys %main::;
}

# Not imported from a module.
sub is_own {
    my ($name) = @_;
    require B;
    return B::svref_2object(\&{"main::$name"})->GV->STASH->NAME eq 'main';
}

# Which function is meant, where no name was given: named ones are there as soon as the program is
# compiled, and only compiled it is as the body of another one.
sub detect {
    my ($event, $code) = @_;
    my %before = defined_subs();
    run_text($event, "sub $ANONYMOUS {", $code, '}');
    my %after = defined_subs();
    my @names = grep { !$before{$_} && $_ ne $ANONYMOUS } sort keys %after;
    @names = grep { is_own($_) } @names if @names;
    my @public = grep { !/\A_/ } @names;
    @names = @public if @public;
    return $ANONYMOUS unless @names;
    die SandboxCall::DetectionError->new("Multiple functions detected: [@{[join ', ', @names]}]. " .
        "Please specify functionName manually.") if @names > 1;
    return $names[0];
}

sub load_program {
    my ($event) = @_;
    my $code = $event->{code} =~ s/\A\x{feff}//r;
    $0 = whole($event->{file});
    unshift @INC, $0 =~ s{/[^/]*\z}{}r;
    my $name = $event->{function};
    $name = detect($event, $code) if $event->{detect};
    run_text($event, '', $code, '') if $name ne $ANONYMOUS;
    (my $path = $name) =~ s/\./::/g;
    die SandboxCall::NameError->new("Function '$name' not found") unless defined &{"main::$path"};
    return \&{"main::$path"};
}

# ---- failing ----

{
    package SandboxCall::Error;
    sub new { my ($class, $message) = @_; return bless {message => $message}, $class }
    sub message { return $_[0]{message} }
    for my $kind (qw(SyntaxError NameError DetectionError)) {
            @{"SandboxCall::${kind}::ISA"} = ('SandboxCall::Error');
    }
}

my $frames = '';

# Where it came from, of the program's own frames.
sub note_frames {
    my $lines = '';
    for (my $i = 1; my ($package, $file, $line, $sub) = caller($i); $i++) {
        next if $file eq $ME || $file =~ /\A\(eval/ || $sub =~ /\ASandboxCall::/;
        $lines .= "    $sub called at $file line $line\n" if $sub ne '(eval)';
    }
    $frames = $lines;
}

sub report {
    my ($error) = @_;
    my ($type, $message) = ('Error', "$error");
    if (my $kind = ref $error) {
        $type = $kind =~ s/\ASandboxCall:://r;
        $message = eval { $error->message } // $message;
        $message = "died with a reference to $kind" if $message =~ /\A\w+\(0x[0-9a-f]+\)\z/;
    }
    $message =~ s/\s+\z//;
    my %told = (type => $type, message => substr($message, 0, $MESSAGE_MAX),
                stack => substr("$type: $message\n$frames", 0, $STACK_MAX));
    send_frame('E', encode_value(\%told, 0));
}

sub run {
    my $event = decode(receive()->{V});
    my ($args, $kwargs, $holes) = arguments($event);
    local $SIG{__DIE__} = \&note_frames;
    my $function = load_program($event);
    my @values = $function->(bind_names($function, $args, $kwargs, $holes));
    my $payload = encode_value(@values > 1 ? \@values : $values[0], 0);
    die 'the returned value has ' . length($payload) . " bytes as JSON, at most $event->{resultMax} are allowed\n"
        if length($payload) > $event->{resultMax};
    send_frame('R', $payload);
}

# Started ahead: where, and with which variables, comes when there is a job; nothing: there is none.
sub hold {
    my ($path) = @_;
    decode(encode_value({rehearsed => [1, 'x', undef]}, 0));
    open(my $hold, '<:raw', $path) or exit(126);
    my $text = do { local $/; <$hold> } // '';
    close($hold);
    exit(126) if $text eq '';
    my ($cwd, @pairs) = split(/\0/, $text);
    %ENV = map { split(/=/, $_, 2) } @pairs;
    $^T = time;
    chdir($cwd);
}

if (@ARGV && $ARGV[0] eq 'hold') {
    hold((splice(@ARGV, 0, 2))[1]);
}
if (!eval { run(); 1 }) {
    report($@);
    exit(1);
}
