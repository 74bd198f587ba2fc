# Reads a body a line, in base64, and prints what JSON.generate and pretty_generate sign: name, signature, and the bytes in base64.
require 'base64'
require 'json'
require 'openssl'

STDIN.each_line do |line|
  begin
    value = JSON.parse(Base64.decode64(line).force_encoding('UTF-8'))
    written = { '' => JSON.generate(value) }
    # json 2.6 and older open a line for what is empty.
    written[' with pretty_generate'] = JSON.pretty_generate(value) if JSON.pretty_generate({ a: {} }).include?('{}')
    written.each do |settings, body|
      name = "JSON.generate of Ruby#{settings}"
      puts [name, OpenSSL::HMAC.hexdigest('SHA1', ARGV[0], body), Base64.strict_encode64(body)].join("\t")
    end
  rescue JSON::ParserError, JSON::GeneratorError
    # It refuses this body, so it signs nothing.
  end
  puts
end
