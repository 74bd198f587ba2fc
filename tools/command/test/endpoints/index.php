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
    'form' => http_build_query($_POST),
    default => $body,
};
$expected = hash_hmac('sha1', $signed, $secret);
$matches = $fault === 'strncmp' ? strncmp($given, $expected, strlen($given)) === 0 : hash_equals($expected, $given);
if (!$matches) {
    answer(401);
}
answer(is_object(json_decode($body)) ? 204 : 400);
