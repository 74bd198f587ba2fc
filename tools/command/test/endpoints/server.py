"""An endpoint on the standard library of Python: right, or with the one fault that FAULT names. Prints its port."""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["SECRET"].encode()
FAULT = os.environ.get("FAULT", "")
seen = set()


def digest(body, hash=hashlib.sha1):
    return hmac.new(SECRET, body, hash).hexdigest()


def signed_bytes(body):
    """What the endpoint takes for the bytes that were signed."""
    if FAULT == "json-dumps":
        return json.dumps(json.loads(body)).encode()
    if FAULT == "strip":
        return body.strip()
    if FAULT == "latin-1":
        return body.decode("latin-1").encode()
    if FAULT == "text-mode":
        return body.replace(b"\r\n", b"\n")
    if FAULT == "str-of-bytes":
        return str(body).encode()
    if FAULT == "first-4096":
        return body[:4096]
    return body


def is_authentic(body, headers):
    given = headers.get("X-Signature", "")
    if FAULT == "verifies-nothing":
        return True
    if FAULT == "trusts-delete" and b'"type":"delete"' in body:
        return True
    if FAULT == "missing-is-fine" and "X-Signature" not in headers:
        return True
    if FAULT == "empty-is-fine" and given == "":
        return True
    if FAULT == "crash-on-missing":
        given = headers["X-Signature"].strip()
    if FAULT == "bytes-fromhex":
        return hmac.compare_digest(bytes.fromhex(given), bytes.fromhex(digest(body)))
    expected = digest(signed_bytes(body))
    if FAULT == "sha256":
        expected = digest(body, hashlib.sha256)
    if FAULT == "also-sha256" and given == digest(body, hashlib.sha256):
        return True
    if FAULT == "base64":
        expected = base64.b64encode(bytes.fromhex(expected)).decode()
    if FAULT == "prefix":
        return given != "" and expected.startswith(given)
    if FAULT == "first-ten":
        return given[:10] == expected[:10]
    if FAULT == "any-case":
        given = given.lower()
    if FAULT == "one-body":
        if given == expected:
            seen.add(given)
        return given in seen
    if FAULT == "unkeyed":
        return given in (expected, hashlib.sha1(body).hexdigest())
    return hmac.compare_digest(given.encode(), expected.encode())


def check(message):
    """The status for a message that is authentic."""
    if FAULT == "unknown-fields" and set(message) - {
        "version", "type", "userId", "timestamp", "context", "properties", "traits", "event", "name",
        "groupId", "Previous ID", "User ID", "anonymousId",
    }:
        return 422
    if FAULT == "needs-message-id":
        return 200 if message.get("messageId") else 422
    if FAULT == "needs-user-id" and not message.get("userId"):
        return 422
    if FAULT == "no-screen" and message.get("type") == "screen":
        return 400
    if FAULT == "no-track" and message.get("type") == "track":
        return 422
    if FAULT == "needs-version":
        return 200 if message.get("version") == 1 else 422
    if FAULT == "too-old":
        then = time.strptime(message.get("timestamp", "2000-01-01T00:00:00")[:19], "%Y-%m-%dT%H:%M:%S")
        return 400 if abs(time.mktime(time.gmtime()) - time.mktime(then)) > 300 else 200
    if FAULT == "no-context" and "context" in message and message.get("type") != "screen":
        return 422
    if FAULT == "string-traits" and any(isinstance(value, bool) for value in message.get("traits", {}).values()):
        return 422
    return 200


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1" if FAULT == "unread-body" else "HTTP/1.0"

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        if FAULT == "limit-100-kb" and length > 100_000:
            return self.answer(413)
        if FAULT == "hangs-on-large" and length > 300_000:
            time.sleep(20)
        if FAULT == "unread-body" and self.headers.get("X-Signature", "0") == "0" * 40:
            return self.answer(401)
        body = self.rfile.read(length)
        if FAULT == "hangs":
            time.sleep(60)
        if FAULT == "redirects":
            return self.answer(302, Location="/login?next=x")
        if FAULT == "always-500":
            return self.answer(500)
        if FAULT == "parses-first":
            json.loads(body)
        if not is_authentic(body, self.headers):
            if FAULT == "500-on-forged":
                return self.answer(500)
            if FAULT == "302-on-forged":
                return self.answer(302, Location="/login")
            if FAULT == "200-with-error":
                return self.answer(200, text='{"error":"invalid signature"}')
            return self.answer(401)
        if FAULT == "conflict":
            if body in seen:
                return self.answer(409)
            seen.add(body)
        try:
            message = json.loads(body)
            if not isinstance(message, dict):
                raise ValueError
        except ValueError:
            return self.answer(500 if FAULT == "crash-on-json" else 400)
        if FAULT == "nul" and "\\u0000" in body.decode():
            return self.answer(500)
        return self.answer(check(message))

    def answer(self, status, text="{}", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64 if FAULT else 5  # The default; 20 at once then take a second.

    def handle_error(self, *args):
        pass


server = Server(("127.0.0.1", 0), Endpoint)
print(server.server_address[1], flush=True)
server.serve_forever()
