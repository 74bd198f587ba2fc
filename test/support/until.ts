/** Waits for what sockets bring about, by looking again each turn of the event loop; the test's own time limit ends it. */

export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve))
}
