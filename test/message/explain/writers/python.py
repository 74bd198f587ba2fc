"""Reads a body a line, in base64, and prints what each setting of json.dumps signs: name, signature, and the bytes in base64."""
import base64, hashlib, hmac, itertools, json, sys

secret = sys.argv[1].encode()
ORDERS = {"": {}, "sort_keys=True": {"sort_keys": True}}
STRINGS = {"": {}, "ensure_ascii=False": {"ensure_ascii": False}}
LAYOUTS = {
    "": {},
    "separators=(',', ':')": {"separators": (",", ":")},
    "indent=2": {"indent": 2},
    "indent=4": {"indent": 4},
    "indent='\\t'": {"indent": "\t"},
}
for line in sys.stdin:
    value = json.loads(base64.b64decode(line))
    for chosen in itertools.product(ORDERS.items(), STRINGS.items(), LAYOUTS.items()):
        settings = ", ".join(label for label, _ in chosen if label)
        options = {key: option for _, part in chosen for key, option in part.items()}
        try:
            body = json.dumps(value, **options).encode()
        except UnicodeEncodeError:
            continue
        name = "json.dumps of Python" + (" with " + settings if settings else "")
        print(name, hmac.new(secret, body, hashlib.sha1).hexdigest(), base64.b64encode(body).decode(), sep="\t")
    print()
