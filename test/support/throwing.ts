/** A function that throws this error. */
export function throwing(error: string | Error): () => never {
  return () => {
    throw typeof error === 'string' ? new Error(error) : error
  }
}
