/** Which answers are worth another attempt: one rule for the sender and the client. */

/** 408, 429 and every 5xx ("Outbound event delivery", Errors): the trouble may pass. Every other status is final. */
export function isTransient(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status < 600)
}
