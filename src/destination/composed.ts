/** How a collector gives several destinations the same messages, composed and serialised once. Nothing that users see. */

import type { Message } from '../message/message.ts'
import type { Queued, Submission } from './api.ts'

export interface ComposedSubmission {
  readonly message: Message
  readonly bytes: Buffer
  readonly id: string | undefined
}

export type SubmitComposed = (submissions: readonly ComposedSubmission[]) => Promise<readonly Queued[]>

type Submit = (submissions: readonly Submission[]) => Promise<readonly Queued[]>

const methods = new WeakMap<Submit, SubmitComposed>()

export function offerComposed(submit: Submit, submitComposed: SubmitComposed): void {
  methods.set(submit, submitComposed)
}

export function findSubmitComposed(submit: Submit): SubmitComposed | undefined {
  return methods.get(submit)
}
