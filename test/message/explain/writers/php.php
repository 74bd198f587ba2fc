<?php
// Reads a body a line, in base64, and prints what each setting of json_encode signs: name, signature, and the bytes in base64.
$orders = ['' => false, 'json_decode into arrays' => true];
$strings = [
    '' => 0,
    'JSON_UNESCAPED_SLASHES' => JSON_UNESCAPED_SLASHES,
    'JSON_UNESCAPED_UNICODE' => JSON_UNESCAPED_UNICODE,
    'JSON_UNESCAPED_SLASHES, JSON_UNESCAPED_UNICODE' => JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE,
];
$numbers = ['' => 0, 'JSON_PRESERVE_ZERO_FRACTION' => JSON_PRESERVE_ZERO_FRACTION];
$layouts = ['' => 0, 'JSON_PRETTY_PRINT' => JSON_PRETTY_PRINT];
while (($line = fgets(STDIN)) !== false) {
    $text = base64_decode($line);
    foreach ($orders as $order => $arrays) foreach ($strings as $string => $s) foreach ($numbers as $number => $n) foreach ($layouts as $layout => $l) {
        $value = json_decode($text, $arrays);
        if (json_last_error() !== JSON_ERROR_NONE) continue;
        $body = json_encode($value, $s | $n | $l);
        if ($body === false) continue;
        $settings = implode(', ', array_filter([$order, $string, $number, $layout]));
        echo 'json_encode of PHP', $settings === '' ? '' : " with $settings", "\t", hash_hmac('sha1', $body, $argv[1]), "\t", base64_encode($body), "\n";
    }
    echo "\n";
}
