# Reads a body a line, in base64, and prints what each setting of JSON.generate signs: name, signature, and the bytes in base64.
require 'base64'
require 'json'
require 'openssl'

def sort(value)
  case value
  when Hash then value.sort.to_h { |key, each| [key, sort(each)] }
  when Array then value.map { |each| sort(each) }
  else value
  end
end

pretty = JSON.pretty_generate({ a: {} }).include?('{}') ? 'pretty_generate' : 'pretty_generate of json 2.6'
STDIN.each_line do |line|
  begin
    value = JSON.parse(Base64.decode64(line).force_encoding('UTF-8'))
    [['', value], ['sorted keys', sort(value)]].each do |order, ordered|
      [['', {}], ['escape_slash: true', { escape_slash: true }], ['ascii_only: true', { ascii_only: true }]].each do |escapes, options|
        [['', JSON.generate(ordered, options)], [pretty, JSON.pretty_generate(ordered, options)]].each do |layout, body|
          settings = [order, escapes, layout].reject(&:empty?).join(', ')
          name = 'JSON.generate of Ruby' + (settings.empty? ? '' : " with #{settings}")
          puts [name, OpenSSL::HMAC.hexdigest('SHA1', ARGV[0], body), Base64.strict_encode64(body)].join("\t")
        end
      end
    end
  rescue JSON::ParserError, JSON::GeneratorError
    # It refuses this body, so it signs nothing.
  end
  puts
end
