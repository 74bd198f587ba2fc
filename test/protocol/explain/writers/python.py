"""Reads a body a line, in base64, and prints what each setting of json.dumps signs: name, signature, and the bytes in base64."""
import base64, hashlib, hmac, json, sys

secret = sys.argv[1].encode()
SETTINGS = {
    "": {},
    " with separators=(',', ':')": {"separators": (",", ":")},
    " with ensure_ascii=False": {"ensure_ascii": False},
    " with ensure_ascii=False, separators=(',', ':')": {"ensure_ascii": False, "separators": (",", ":")},
    " with sort_keys=True": {"sort_keys": True},
    " with sort_keys=True, separators=(',', ':')": {"sort_keys": True, "separators": (",", ":")},
}
for line in sys.stdin:
    value = json.loads(base64.b64decode(line))
    for settings, options in SETTINGS.items():
        try:
            body = json.dumps(value, **options).encode()
        except UnicodeEncodeError:
            continue
        name = "json.dumps of Python" + settings
        print(name, hmac.new(secret, body, hashlib.sha1).hexdigest(), base64.b64encode(body).decode(), sep="\t")
    print()
