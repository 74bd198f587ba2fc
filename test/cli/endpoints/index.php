<?php
// An endpoint for the server of PHP (php -S): right, or with the one fault that FAULT names.

$fault = getenv('FAULT');
$secret = getenv('SECRET');
$body = file_get_contents('php://input');
$given = $_SERVER['HTTP_X_SIGNATURE'] ?? '';

function answer(int $status): never
{
    http_response_code($status);
    header('Content-Type: application/json');
    echo '{}';
    exit;
}

$signed = match ($fault) {
    'json-encode' => json_encode(json_decode($body)),
    'json-encode-arrays' => json_encode(json_decode($body, true)),
    'json-encode-unescaped' => json_encode(json_decode($body), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE),
    'trim' => trim($body),
    'form' => http_build_query($_POST),
    default => $body,
};
$expected = hash_hmac($fault === 'sha256' ? 'sha256' : 'sha1', $signed, $secret);
$matches = match ($fault) {
    'strncmp' => strncmp($given, $expected, strlen($given)) === 0,
    'base64' => hash_equals(base64_encode(hex2bin($expected)), $given),
    'hex2bin' => hash_equals(hex2bin($expected), hex2bin($given)),
    default => hash_equals($expected, $given),
};
if (!$matches) {
    if ($fault === 'always-200') {
        answer(200);
    }
    answer($fault === 'login' ? 302 : 401);
}
$message = json_decode($body);
if (!is_object($message)) {
    answer($fault === 'crash-on-json' ? 500 : 400);
}
if ($fault === 'created-only' && isset($message->properties->zebra)) {
    answer(422);
}
answer($fault === 'created' ? 201 : 204);
