/** The causes that `explainSignature` can find, each explained in sentences: what is wrong, what was found, what to do. */

/** Names one deviation. Codes are stable: later versions may add codes, but never rename one. */
export type SignatureCauseCode = keyof typeof SENTENCES

/**
 * One deviation from a correct signature. In a code, "extra" and "lost" describe the values that were passed. With `body_bom_extra`, for
 * example, the body that was passed has a byte order mark that the signed bytes did not have.
 */
export interface SignatureCause {
  /** Names the deviation. */
  readonly code: SignatureCauseCode
  /** Says what is wrong, what was found, and what to do. Contains no part of the secret, the body or a digest. */
  readonly message: string
  /** Every serialiser, with its settings, that writes exactly the bytes that were signed. Set only for `body_reserialised`. */
  readonly writers?: readonly string[]
}

const SEND_AS_SIGNED =
  'Verify the body as it arrived, before any parser. If it did arrive like this, sign exactly the bytes that are sent.'
const HEX = 'Send the digest as 40 lowercase hexadecimal digits.'
const PASS_AS_SENT = 'Pass the value of `X-Signature` as it arrived, or remove the addition at the sender.'
const SAME_SECRET = 'Use the same bytes as the secret at both ends.'

const SENTENCES = {
  signature_missing:
    'The request has no signature. Set the shared secret at the sender, and look for a proxy that drops `X-Signature`.',
  signature_unreadable:
    'The signature must be 40 lowercase hexadecimal digits. Got text that is not a digest in hexadecimal or base64. Pass the value of `X-Signature` as it arrived.',
  signature_is_secret:
    'The signature must be computed from the body. Got the shared secret itself. Replace the secret, because it was sent, and send the HMAC-SHA1 of the body.',
  signature_spaced: `The signature must be 40 hexadecimal digits and nothing else. Got white space around it. ${PASS_AS_SENT}`,
  signature_quoted: `The signature must be 40 hexadecimal digits and nothing else. Got quotation marks around it. ${PASS_AS_SENT}`,
  signature_labelled: `The signature must be 40 hexadecimal digits and nothing else. Got a label with it, such as \`sha1=\`. ${PASS_AS_SENT}`,
  signature_repeated: `The signature must be 40 hexadecimal digits and nothing else. Got a list of values, as when a header is sent twice. Send \`X-Signature\` once: look for a client and a proxy that both set it.`,
  signature_timestamped: `The signature must be 40 hexadecimal digits and nothing else. Got a timestamp with it, as in \`t=…,v1=…\`. ${PASS_AS_SENT}`,
  signature_uppercase: `The signature must be in lower case. Got upper case. ${HEX}`,
  signature_base64: `The signature must be hexadecimal. Got base64. ${HEX}`,
  signature_base64url: `The signature must be hexadecimal. Got base64url. ${HEX}`,
  signature_hex_in_base64: `The signature must be hexadecimal. Got hexadecimal digits that were also encoded as base64. ${HEX}`,
  signature_cut:
    'The signature must be 40 hexadecimal digits. Got only a part of the digest. Look for a column, a variable or a copy that cuts it off.',

  hash_md5: 'The digest must be HMAC-SHA1. Got a digest of MD5. Sign with SHA-1.',
  hash_sha224: 'The digest must be HMAC-SHA1. Got a digest of SHA-224. Sign with SHA-1.',
  hash_sha256: 'The digest must be HMAC-SHA1. Got a digest of SHA-256. Sign with SHA-1.',
  hash_sha384: 'The digest must be HMAC-SHA1. Got a digest of SHA-384. Sign with SHA-1.',
  hash_sha512: 'The digest must be HMAC-SHA1. Got a digest of SHA-512. Sign with SHA-1.',
  key_unused:
    'The digest must be an HMAC. Got a hash of the body alone, which anyone can compute. Sign with an HMAC, keyed with the secret.',
  key_before_body:
    'The digest must be an HMAC. Got a hash of the secret followed by the body. Sign with an HMAC, keyed with the secret.',
  key_behind_body:
    'The digest must be an HMAC. Got a hash of the body followed by the secret. Sign with an HMAC, keyed with the secret.',
  key_and_body_swapped:
    'The HMAC must be keyed with the secret. Got an HMAC keyed with the body. Swap the two arguments.',

  secret_space_extra: `The secret must be the one that signed. Got a secret with white space around it, which the signer did not use. Trim the secret that you pass.`,
  secret_space_lost: `The secret must be the one that signed. Got a secret without a space that the signer had. Trim the secret at the sender.`,
  secret_line_break_lost: `The secret must be the one that signed. Got a secret without a line break that the signer had at its end. Trim the secret at the sender: many files end with a line break, and \`echo\` adds one.`,
  secret_quotes_extra: `The secret must be the one that signed. Got a secret in quotation marks, which the signer did not use. Remove them from the secret that you pass.`,
  secret_quotes_lost: `The secret must be the one that signed. Got a secret without the quotation marks that the signer had. Remove them at the sender.`,
  secret_label_extra: `The secret must be the one that signed. Got a line NAME=value from an environment file. Pass the part after the equals sign.`,
  secret_hex_decoded: `The secret must be used as text. Got a signature keyed with the bytes that the secret encodes in hexadecimal. ${SAME_SECRET}`,
  secret_base64_decoded: `The secret must be used as text. Got a signature keyed with the bytes that the secret encodes in base64. ${SAME_SECRET}`,
  secret_hex_encoded: `The secret must be the one that signed. Got a text whose hexadecimal form the signer used. ${SAME_SECRET}`,
  secret_base64_encoded: `The secret must be the one that signed. Got a text whose base64 form the signer used. ${SAME_SECRET}`,
  secret_latin1:
    'The secret must be encoded as UTF-8. Got a signature keyed with the secret in Latin-1. Encode the secret as UTF-8 at the sender.',

  body_empty:
    'The signature must cover the body. Got a signature of no bytes. Sign the body itself. Perhaps the body had already been read, or had not arrived yet.',
  body_object_text:
    'The signature must cover the body. Got a signature of the text "[object Object]". Sign the serialised bytes, not an object.',
  body_timestamped:
    'The signature must cover only the body. Got a signature of a timestamp and the body. Sign only the body, or verify it by the rules of the service that sent it, such as Stripe.',
  body_line_break_extra: `The body must be the bytes that were signed. Got a line break at its end that was not signed. ${SEND_AS_SIGNED}`,
  body_line_break_lost: `The body must be the bytes that were signed. Got a body without the line break that was signed at its end. ${SEND_AS_SIGNED} A shell drops line breaks in \`$(…)\`, and curl drops them with \`--data @file\`.`,
  body_line_breaks: `The body must be the bytes that were signed. Got other line breaks: CRLF for LF, or LF for CRLF. ${SEND_AS_SIGNED}`,
  body_space_extra: `The body must be the bytes that were signed. Got white space around it that was not signed. ${SEND_AS_SIGNED}`,
  body_bom_extra: `The body must be the bytes that were signed. Got a byte order mark that was not signed. ${SEND_AS_SIGNED}`,
  body_bom_lost: `The body must be the bytes that were signed. Got a body without the byte order mark that was signed. ${SEND_AS_SIGNED} Decoding it as text drops the mark.`,
  body_latin1:
    'The signature must cover UTF-8. Got a signature of the body in Latin-1. Encode the text as UTF-8 before it is signed.',
  body_ascii:
    'The signature must cover UTF-8. Got a signature of the body in ASCII, with a question mark for each other character. Encode the text as UTF-8 before it is signed.',
  body_utf16:
    'The signature must cover UTF-8. Got a signature of the body in UTF-16. Encode the text as UTF-8 before it is signed.',
  body_latin1_received:
    'The body must be the bytes that were signed. Got a body in Latin-1, although it was signed in UTF-8. Verify the bytes as they arrived, and send them as UTF-8.',
  body_utf8_twice:
    'The signature must cover the body as it is sent. Got a signature of the body encoded as UTF-8 twice. Encode the text once before it is signed.',
  body_utf8_twice_received:
    'The body must be the bytes that were signed. Got a body that was encoded as UTF-8 twice. Verify the bytes as they arrived, and encode the text once.',
  body_utf8_repaired:
    'The signature must cover the body as it is sent. Got a signature of a text in which U+FFFD replaces the bytes that are not UTF-8. Sign the bytes, or send valid UTF-8.',
  body_base64_received:
    'The body must be the bytes that were signed. Got a body in base64. Decode the body first, as `isBase64Encoded` of a serverless event says.',
  body_base64_signed:
    'The signature must cover the body as it is sent. Got a signature of the base64 of the body. Sign the bytes themselves.',
  body_json_string_received:
    'The body must be the bytes that were signed. Got a body as a JSON string. Serialise the message once: it was serialised twice.',
  body_json_string_signed:
    'The signature must cover the body as it is sent. Got a signature of the body as a JSON string. Serialise the message once before it is signed.',
  body_form_received:
    'The body must be the bytes that were signed. Got a form whose decoded value was signed. Send the body as `application/json`.',
  body_percent_encoded:
    'The signature must cover the body as it is sent. Got a signature of the percent-encoded body. Sign the bytes that are sent.',
  body_first_element:
    'The signature must cover the whole body. Got a signature of only the first element of the list. Turn off batching at the sender: nothing proves that the other elements are authentic. See docs/senders.md of hookline.',
  body_reserialised: `The body must be the bytes that were signed. Got the same JSON, written differently. ${SEND_AS_SIGNED}`,
}

export function causeOf(code: SignatureCauseCode): SignatureCause {
  return { code, message: SENTENCES[code] }
}

/** Returns the cause of a body that was serialised again. Its sentence names each serialiser once, whatever the settings. */
export function reserialisedBy(writers: readonly string[]): SignatureCause {
  const families = Map.groupBy(writers, (name) => name.replace(/ with .*/, ''))
  const names = [...families.values()].map(([first]) => first).join(', or ')
  const message = `The body must be the bytes that were signed. Got the same JSON, written differently: the signed bytes are the output of ${names}. ${SEND_AS_SIGNED}`
  return { code: 'body_reserialised', message, writers }
}
