/** How a collector gives several destinations the same messages, composed and serialised once. Nothing that users see. */

import type { Message } from '../message/message.ts'
import type { Queued, Submission } from './api.ts'

/** A complete message. */
export interface ComposedSubmission {
  readonly message: Message
  /** What is signed and sent for it. */
  readonly bytes: Buffer
  /** The id of its job, made from the key of the submission. Default: a new one. */
  readonly id: string | undefined
}

/** Submits them: as `submit`, which composes each message first. */
export type SubmitComposed = (submissions: readonly ComposedSubmission[]) => Promise<readonly Queued[]>

type Submit = (submissions: readonly Submission[]) => Promise<readonly Queued[]>

/** By the method and not by the destination: one that was wrapped or replaced has to be called, with messages that it may change. */
const methods = new WeakMap<Submit, SubmitComposed>()

/** Notes what a collector may call in place of this method. */
export function offerComposed(submit: Submit, submitComposed: SubmitComposed): void {
  methods.set(submit, submitComposed)
}

/** What a collector may call in place of this method; undefined when it is no destination's own. */
export function findSubmitComposed(submit: Submit): SubmitComposed | undefined {
  return methods.get(submit)
}
