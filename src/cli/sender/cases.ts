/** The cases of a sender, in the order in which they are reported. */

import type { CaseFacts } from '../cases.ts'
import type { Scenario } from './messages.ts'
import {
  type Check,
  checkContentType,
  checkMessage,
  checkMethod,
  checkOneMessage,
  checkPath,
  checkSignature,
  checkTimestamp,
  checkToken,
  checkUserAgent,
  checkVersion,
  each,
  every,
  type Judge,
} from './requests.ts'
import { identical, left, retried, takenOnce, timesOut, waitsForSlow } from './retries.ts'

/** A case of a sender. */
export interface SenderCase extends CaseFacts {
  /** The messages that it needs. Without any, it judges every request. */
  readonly scenarios: readonly Scenario[]
  readonly judge: Judge
}

const EVERY = 'every request'

/** The case that needs `--tls`, and that nothing else is checked with. */
export const SELF_SIGNED: CaseFacts = {
  id: 'self-signed',
  sends: 'shows a self-signed certificate, with --tls',
  expects: 'no request',
  section: 'Authentication 4',
  severity: 'fail',
}

/** All other cases. */
export const SENDER_CASES: readonly SenderCase[] = [
  define(
    'path',
    EVERY,
    'the path of the URL, and nothing more',
    'Outbound delivery',
    [],
    every(checkPath, 'All had the path of the URL.'),
  ),
  define('method', EVERY, 'POST', 'Outbound delivery', [], every(checkMethod, 'All were POST.')),
  define(
    'content-type',
    EVERY,
    'application/json',
    'Outbound delivery',
    [],
    each(checkContentType, 'All were application/json.'),
  ),
  define('user-agent', EVERY, 'a User-Agent', 'Outbound delivery', [], each(checkUserAgent, 'All named the sender.')),
  define(
    'signature',
    EVERY,
    'the signature of its exact bytes',
    'Authentication 2',
    [],
    each(checkSignature, 'All were signed over their exact bytes.'),
  ),
  define('one-message', EVERY, 'one message', 'Outbound delivery', [], each(checkOneMessage, 'All held one.')),
  define('message', EVERY, 'a valid message', 'Delivered message fields', [], each(checkMessage, 'All were valid.')),
  warn('user-agent-form', 'a User-Agent like Shop/1.0', 'Outbound delivery', checkToken, 'All had the form Shop/1.0.'),
  warn('version', '`version` 1', 'Delivered message fields', checkVersion, 'All were of version 1.'),
  warn(
    'timestamp',
    'a `timestamp` like 2026-01-15T09:30:00.000Z',
    'Delivered message fields',
    checkTimestamp,
    'All had one of that form.',
  ),
  define('taken-once', 'answers 200', 'no retry', 'Errors', ['taken'], takenOnce),
  define('slow-answer', 'answers 200 after 4 s', 'waits for it', 'Limits', ['slow'], waitsForSlow),
  define(
    'retry-500',
    'answers 500',
    'a retry',
    'Errors',
    ['failed'],
    retried('failed', 1, 'A message that is answered 500'),
  ),
  define(
    'retry-again',
    'answers the retry 500',
    'another retry',
    'Errors',
    ['failed'],
    retried('failed', 2, 'A message whose retry is answered 500'),
  ),
  define(
    'retry-503',
    'answers 503',
    'a retry',
    'Errors',
    ['unavailable'],
    retried('unavailable', 1, 'A message that is answered 503'),
  ),
  define('timeout', 'does not answer', 'gives up after 5 s', 'Limits', ['silent'], timesOut),
  define(
    'retry-timeout',
    'does not answer',
    'a retry',
    'Errors',
    ['silent'],
    retried('silent', 1, 'A message that is not answered'),
  ),
  define('identical-retry', 'answers 500', 'identical bytes and signature', 'Authentication 2', ['failed'], identical),
  define(
    'refused-once',
    'answers 400, 401 and 404',
    'no retry',
    'Errors',
    ['invalid', 'unauthorized', 'missing'],
    left(['invalid', 'unauthorized', 'missing'], 'A message that is answered 4xx'),
  ),
]

function define(
  id: string,
  sends: string,
  expects: string,
  section: string,
  scenarios: readonly Scenario[],
  judge: Judge,
): SenderCase {
  return { id, sends, expects, section, severity: 'fail', scenarios, judge }
}

function warn(id: string, expects: string, section: string, check: Check, good: string): SenderCase {
  return { ...define(id, EVERY, expects, section, [], each(check, good, 'warn')), severity: 'warn' }
}
