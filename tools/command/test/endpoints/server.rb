# An endpoint on webrick: right, or with the one fault that FAULT names. Prints its port.

require 'json'
require 'openssl'
require 'webrick'

SECRET = ENV.fetch('SECRET')
FAULT = ENV.fetch('FAULT', '')

def signed(body)
  case FAULT
  when 'to-json' then JSON.parse(body).to_json
  when 'pretty' then JSON.pretty_generate(JSON.parse(body))
  else body
  end
end

def equal?(one, other)
  one.bytesize == other.bytesize && OpenSSL.fixed_length_secure_compare(one, other)
end

class Endpoint < WEBrick::HTTPServlet::AbstractServlet
  def do_POST(request, response)
    body = request.body || ''
    given = request['X-Signature'].to_s
    unless equal?(given, OpenSSL::HMAC.hexdigest('SHA1', SECRET, signed(body)))
      response.status = 401
      return
    end
    message = JSON.parse(body)
    response.status = message.is_a?(Hash) ? 200 : 400
    response.status = 500 if FAULT == 'no-alias' && message['type'] == 'alias'
  rescue JSON::ParserError
    response.status = 400
  end
end

server = WEBrick::HTTPServer.new(
  Port: 0, BindAddress: '127.0.0.1', AccessLog: [], Logger: WEBrick::Log.new(File::NULL),
  StartCallback: -> { puts server.listeners.first.addr[1]; $stdout.flush }
)
server.mount('/webhooks', Endpoint)
server.start
