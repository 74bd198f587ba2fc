<?php
// Reads a body a line, in base64, and prints what each setting of json_encode signs: name, signature, and the bytes in base64.
$settings = [
    '' => 0,
    ' with JSON_UNESCAPED_SLASHES' => JSON_UNESCAPED_SLASHES,
    ' with JSON_UNESCAPED_UNICODE' => JSON_UNESCAPED_UNICODE,
    ' with JSON_UNESCAPED_SLASHES, JSON_UNESCAPED_UNICODE' => JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE,
];
while (($line = fgets(STDIN)) !== false) {
    $value = json_decode(base64_decode($line));
    foreach (json_last_error() === JSON_ERROR_NONE ? $settings : [] as $name => $flags) {
        $body = json_encode($value, $flags);
        if ($body === false) continue;
        echo 'json_encode of PHP', $name, "\t", hash_hmac('sha1', $body, $argv[1]), "\t", base64_encode($body), "\n";
    }
    echo "\n";
}
