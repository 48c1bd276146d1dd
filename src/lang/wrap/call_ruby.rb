# SPDX-License-Identifier: MIT
#
# Calls functions of a Ruby program: one, or in a session many.
#
# The job comes as frames over descriptor 3 and the returned value leaves the same way. The event
# says what to call and where the arguments are: in the event as a literal (inline) or as JSON, on
# standard input as a SIP packet, or in a file. The program is evaluated at the top level, so that
# its methods are what they would be in a file of its own, with their own lines.
#
# Loading the library for JSON takes a third of the time that Ruby takes to start. So it comes when
# somebody asks for it: the program, or a text too large for the few lines here.
autoload :JSON, 'json'

module SandboxCall
  HEAD = 9
  STACK_MAX = 64 * 1024
  MESSAGE_MAX = 16 * 1024
  ANONYMOUS = '__anonymous_wrapper__'
  CHANNEL = IO.for_fd(3, 'r+b', autoclose: false)
  CHANNEL.close_on_exec = true unless RUBY_PLATFORM.include?('wasi') # where nothing is executed
  CHANNEL.sync = true
  ME = '-e'
  SMALL = 64 * 1024
  LISTED = 1000
  WHITE = [32, 9, 10, 13].freeze
  NUMBER = '0123456789+-.eE'.bytes.freeze
  ESCAPES = { 'b' => "\b", 'f' => "\f", 'n' => "\n", 'r' => "\r", 't' => "\t" }.freeze
  REFUSED = [Errno::EACCES, Errno::EPERM, Errno::EROFS].freeze
  MY_PID = Process.pid

  module_function

  # ---- the channel ----

  def send_frame(kind, payload)
    bytes = payload.b
    CHANNEL.write(format('%s%08x', kind, bytes.bytesize).b + bytes)
    CHANNEL.flush
  end

  # All frames up to G, by kind.
  def receive
    frames = {}
    loop do
      head = CHANNEL.read(HEAD)
      raise EOFError, 'the sandbox was given no job' if head.nil? || head.bytesize < HEAD
      length = head[1..].to_i(16)
      frames[head[0]] = length.zero? ? '' : CHANNEL.read(length).force_encoding('UTF-8')
      return frames if head[0] == 'G'
    end
  end

  # In WebAssembly the interpreter has started long before its job came.
  def settle(setting)
    ENV.replace(setting['env'].to_h { |pair| pair.split('=', 2) })
    Dir.chdir(setting['cwd'])
    srand
  end

  # Started ahead: where, and with which variables, comes when there is a job; nothing: there is none.
  def hold(path)
    text = File.binread(path).force_encoding('UTF-8')
    exit!(126) if text.empty?
    cwd, *env = text.split("\0")
    settle({ 'env' => env, 'cwd' => cwd })
  end

  # What every call does, so that it is compiled and loaded before there is one.
  def rehearse
    event = { 'code' => "def rehearsed(a, b = 2)\n  \"\#{a}\#{b}\"\nend", 'file' => '/tmp/rehearsal.rb', 'given' =>
              { 'args' => [1], 'kwargs' => { 'b' => { 'c' => [1.5, nil, 'x'] } } }, 'function' => 'rehearsed' }
    event = decode(JSON.generate(event))
    program, path = $PROGRAM_NAME, $LOAD_PATH.dup
    load_program(event)
    method = find(event['function'])
    value = call(method, *bind(method, *arguments(event)))
    encode(plain([value, { a: Time.now.to_s }]))
    Object.send(:remove_method, :rehearsed)
    $PROGRAM_NAME = program
    $LOAD_PATH.replace(path)
  end

  # ---- arguments ----

  def decode(text)
    small = text.bytesize <= SMALL && text.count('[{') <= LISTED
    small ? decode_at(text, 0)[0] : JSON.parse(text, max_nesting: false, create_additions: false)
  end

  # The value that begins at a byte, and where it ends. The sender has checked the text.
  def decode_at(text, at)
    at += 1 while WHITE.include?(text.getbyte(at))
    case text.getbyte(at)
    when 34 then decode_string(text, at)
    when 91 then decode_list(text, at + 1)
    when 123 then decode_map(text, at + 1)
    when 116 then [true, at + 4]
    when 102 then [false, at + 5]
    when 110 then [nil, at + 4]
    else decode_number(text, at)
    end
  end

  def decode_number(text, at)
    stop = at
    stop += 1 while NUMBER.include?(text.getbyte(stop))
    digits = text.byteslice(at, stop - at)
    [digits.match?(/[.eE]/) ? Float(digits) : digits.to_i, stop]
  end

  def decode_string(text, at)
    stop = at + 1
    stop += text.getbyte(stop) == 92 ? 2 : 1 until text.getbyte(stop) == 34
    raw = text.byteslice(at + 1, stop - at - 1)
    [raw.include?('\\') ? unescape(raw) : raw, stop + 1]
  end

  def unescape(raw)
    raw.gsub(/\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\./m) do |e|
      if e.size == 12
        [0x10000 + ((e[2, 4].hex - 0xd800) << 10) + e[8, 4].hex - 0xdc00].pack('U')
      elsif e.size == 6
        [e[2, 4].hex].pack('U')
      else
        ESCAPES[e[1]] || e[1]
      end
    end
  end

  def skip(text, at)
    at += 1 while WHITE.include?(text.getbyte(at))
    at
  end

  def decode_list(text, at)
    list = []
    at = skip(text, at)
    until text.getbyte(at) == 93
      value, at = decode_at(text, at)
      list << value
      at = skip(text, at)
      at = skip(text, at + 1) if text.getbyte(at) == 44
    end
    [list, at + 1]
  end

  def decode_map(text, at)
    map = {}
    at = skip(text, at)
    until text.getbyte(at) == 125
      key, at = decode_string(text, at)
      map[key], at = decode_at(text, skip(text, at) + 1)
      at = skip(text, at)
      at = skip(text, at + 1) if text.getbyte(at) == 44
    end
    [map, at + 1]
  end

  # Plain values as JSON; what is not plain, or large, is the library's.
  def encode(value)
    case value
    when nil then 'null'
    when true, false, Integer then value.to_s
    when Float then value.finite? ? value.to_s : JSON.generate(value)
    when String then simple?(value) ? "\"#{value}\"" : JSON.generate(value)
    else encode_many(value)
    end
  end

  def encode_many(value)
    many = value.is_a?(Array) || value.is_a?(Hash)
    return JSON.generate(value, max_nesting: 0) if !many || value.size > LISTED
    return "[#{value.map { |v| encode(v) }.join(',')}]" if value.is_a?(Array)
    "{#{value.map { |k, v| "#{encode(k)}:#{encode(v)}" }.join(',')}}"
  end

  def simple?(text)
    text.encoding == Encoding::UTF_8 && text.valid_encoding? && !text.match?(/["\\\x00-\x1f\x7f]/)
  end

  def read_packet
    head = $stdin.read(HEAD)
    raise EOFError, 'the packet with the arguments is not complete' if head.nil?
    decode($stdin.read(head[1..].to_i(16)).force_encoding('UTF-8'))
  end

  # Nothing of ours stays among the program's files.
  def read_file(path)
    text = File.read(path, encoding: 'UTF-8')
    File.unlink(path)
    decode(text)
  end

  def arguments(event)
    given = case event['mode']
            when 'stdin' then read_packet
            when 'file' then read_file(event['request'])
            else event['given']
            end
    return [given['args'], given['kwargs'], given['holes'] || []] if given
    args, kwargs = eval(event['literal'])
    [args, kwargs, event['holes'] || []]
  end

  # Names of positional parameters take their place. Ruby cannot skip an optional one, so what
  # comes behind a gap is set when the method begins, after the defaults were computed.
  def bind(method, args, kwargs, holes)
    kinds = method.parameters
    places = kinds.select { |kind, _| %i[req opt].include?(kind) }
    late = {}
    # Without names or gaps Ruby knows best, required parameters behind optional ones included.
    holes |= args.each_index.select { |i| args[i].nil? && places[i] && kwargs.key?(places[i][1].to_s) }
    return [args, kwargs, late] if holes.empty? && places.none? { |_, name| kwargs.key?(name.to_s) }
    places.each_with_index do |(kind, name), i|
      empty = i >= args.size || holes.include?(i)
      given = empty && name && kwargs.key?(name.to_s)
      if given && (i == args.size || holes.include?(i)) && late.empty?
        args[i] = kwargs.delete(name.to_s)
        holes -= [i]
      elsif given
        late[name] = kwargs.delete(name.to_s)
      elsif empty && kind == :req
        raise ArgumentError, "missing argument: #{name}" unless kwargs.empty? && i >= args.size
      elsif empty
        rest = (i + 1...args.size).reject { |k| holes.include?(k) }
        rest.each { |k| late[places[k][1]] = args[k] if places[k] }
        args = args.take(i)
        holes = []
        late[:__gap__] = nil
      end
    end
    late.delete(:__gap__)
    [args, kwargs, late]
  end

  def call(method, args, kwargs, late)
    names = kwargs.transform_keys(&:to_sym)
    run = -> { names.empty? ? method.call(*args) : method.call(*args, **names) }
    return run.call if late.empty?
    set = false
    trace = TracePoint.new(:line) do |point|
      next if set
      set = true
      late.each { |name, value| point.binding.local_variable_set(name, value) }
    end
    trace.enable(target: method, &run)
  end

  # ---- the program ----

  def load_program(event)
    code = event['code'].delete_prefix("\uFEFF")
    file = File.expand_path(event['file'])
    $PROGRAM_NAME = file
    $LOAD_PATH.unshift(File.dirname(file))
    code = "def #{ANONYMOUS}(*args, **kwargs);#{code}\nend" if event['body']
    TOPLEVEL_BINDING.eval(code, file, 1)
  end

  def find(name)
    receiver = TOPLEVEL_BINDING.receiver
    owner, dot, last = name.rpartition('.')
    receiver = Object.const_get(owner) unless dot.empty?
    receiver.method(last)
  rescue NameError
    held(name) || raise(NoMethodError, "Function '#{name}' not found")
  end

  # A lambda that the program keeps under the name.
  def held(name)
    value = name.match?(/\A[[:upper:]]/) ? Object.const_get(name) : TOPLEVEL_BINDING.local_variable_get(name)
    value if value.is_a?(Proc)
  rescue NameError
    nil
  end

  # ---- values ----

  # What JSON has no word for: objects that know how to become a hash or an array do so.
  def plain(value, above = 0)
    raise JSON::NestingError, 'the returned value is nested too deeply' if above > 500
    case value
    when Hash then value.to_h { |k, v| [k.to_s, plain(v, above + 1)] }
    when Array then value.map { |v| plain(v, above + 1) }
    when String then text(value)
    when nil, true, false, Numeric then value
    when Symbol then value.to_s
    else converted(value, above)
    end
  end

  def converted(value, above)
    return plain(JSON.parse(value.to_json, max_nesting: false), above + 1) if own_json?(value)
    return plain(value.to_h, above + 1) if value.is_a?(Struct)
    return plain(value.to_a, above + 1) if value.is_a?(Enumerable)
    return plain(value.to_h, above + 1) if value.respond_to?(:to_h)
    value.to_s
  end

  # Not what the library gives to every object: that is its to_s.
  def own_json?(value)
    value.respond_to?(:to_json) && !value.method(:to_json).owner.to_s.start_with?('JSON::')
  end

  def text(value)
    copy = value.encoding == Encoding::BINARY ? value.dup.force_encoding('UTF-8') : value
    copy = copy.encode('UTF-8') unless copy.encoding == Encoding::UTF_8
    copy.valid_encoding? ? copy : copy.scrub
  end

  # ---- failing ----

  def error_text(error)
    lines = (error.backtrace || []).reject { |line| line.start_with?("#{ME}:") }
    stack = "#{error.class}: #{error.message}\n" + lines.map { |line| "    from #{line}\n" }.join
    told = {
      'type' => error.class.name || 'Error',
      'message' => text(error.message.to_s)[0, MESSAGE_MAX],
      'stack' => text(stack)[0, STACK_MAX]
    }
    told['path'] = refused_path(error.message) if REFUSED.include?(error.class)
    encode(told.compact)
  end

  # "Permission denied @ rb_sysopen - /data/x", or "... - (/from, /to)": the caller is told.
  def refused_path(message)
    at = text(message.to_s)[/ - (.*)\z/m, 1]
    at && File.expand_path(at[/\A\(.*, (.*)\)\z/m, 1] || at)
  end

  def report(error)
    send_frame('E', error_text(error))
  end

  def value_text(value, most)
    payload = encode(plain(value))
    if payload.bytesize > most
      raise RangeError, "the returned value has #{payload.bytesize} bytes as JSON, at most #{most} are allowed"
    end
    payload
  end

  # ---- a session ----

  # Stays: reads packets from the channel (SIP, mode P) and answers each of them, beginning with the
  # packet's token. SIGINT ends a call, and nothing else.
  def serve(event)
    @token = event['token']
    @busy = false
    trap('INT') { raise Interrupt, 'the call was interrupted' if @busy }
    last_words { load_program(event) }
    answer('Y', '')
    loop do
      packet = next_packet
      @token = packet['token']
      answer(*turn(event, packet))
    rescue Interrupt => e # when the call had just ended
      @busy = false
      answer('E', error_text(e))
    end
  end

  def next_packet
    head = CHANNEL.read(HEAD)
    exit!(0) if head.nil? || head.bytesize < HEAD
    decode(CHANNEL.read(head[1..].to_i(16)).force_encoding('UTF-8'))
  end

  def answer(kind, payload)
    exit!(0) if Process.pid != MY_PID # a copy that the program made has nothing to tell
    $stdout.flush
    $stderr.flush
    send_frame(kind, @token.b + payload.b)
  end

  def turn(event, packet)
    last_words do
      @busy = true
      send_frame('B', @token)
      method = find(packet['functionName'])
      args, kwargs, late = bind(method, packet['args'], packet['kwargs'], packet['holes'] || [])
      payload = value_text(call(method, args, kwargs, late), event['resultMax'])
      @busy = false
      ['R', payload]
    rescue SystemExit
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException
      @busy = false
      ['E', error_text(e)]
    end
  end

  # A program that ends itself, or cannot be loaded, takes the session with it.
  def last_words
    yield
  rescue Interrupt
    raise
  rescue SystemExit => e
    @busy = false
    answer('F', error_text(SystemExit.new(e.status, "the program called exit(#{e.status})")))
    exit!(e.status.zero? ? 1 : e.status)
  rescue Exception => e # rubocop:disable Lint/RescueException
    answer('F', error_text(e))
    exit!(1)
  end

  # ---- the call ----

  def run
    frames = receive
    settle(decode(frames['N'])) if frames['N']
    event = decode(frames['V'])
    return serve(event) if event['mode'] == 'session'
    args, kwargs, holes = arguments(event)
    load_program(event)
    method = find(event['function'])
    args, kwargs, late = bind(method, args, kwargs, holes)
    value = call(method, args, kwargs, late)
    send_frame('R', value_text(value, event['resultMax']))
  rescue SystemExit => e
    report(SystemExit.new(e.status, "the program called exit(#{e.status})"))
    $stdout.flush
    exit!(e.status.zero? ? 1 : e.status)
  rescue Exception => e # rubocop:disable Lint/RescueException
    report(e)
    exit(1)
  end
end

$stdout.sync = true
if RUBY_PLATFORM.include?('wasi')
  20.times { SandboxCall.rehearse }
  GC.start
  SandboxCall.rehearse if File.open('/dev/hold', 'rb', &:getbyte) # here it is copied
elsif ARGV.first == 'hold'
  path = ARGV.slice!(0, 2).last
  SandboxCall.rehearse
  SandboxCall.hold(path)
end
SandboxCall.run
