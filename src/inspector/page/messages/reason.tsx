/** Why a signature was refused: found out when the message is opened. */

import { useEffect, useState } from 'preact/hooks'
import type { Explanation } from '../../wire-message.ts'
import { get } from '../connection.ts'
import { Failure } from '../parts.tsx'
import { Text } from '../text.tsx'

/** Asks why the signature of a message was refused, and shows the answer. */
export function Reason({ id }: { readonly id: number }) {
  const [message, setMessage] = useState<string | undefined>(undefined)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  useEffect(() => {
    get<Explanation>('explanation', { id }).then(
      (explanation) => setMessage(explanation.message),
      (error: Error) => setProblem(error.message),
    )
  }, [id])
  if (problem !== undefined) return <Failure>{problem}</Failure>
  return (
    <p class="reason break">
      {message === undefined ? 'Comparing it with the secrets…' : <Text value={message} lines />}
    </p>
  )
}
