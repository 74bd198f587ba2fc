/** What a line shows of a message, read from the bytes of a body. */

import { isObject, parseJson } from '../../../message/json.ts'
import { checkMessage } from '../../../message/parse.ts'
import type { MessageFields } from '../kept.ts'

/** Fields are kept up to so many characters. */
const LONGEST = 200

/** Reads the fields. Never throws. */
export function readFields(body: Uint8Array): MessageFields {
  if (body.length === 0) return {}
  let fields: MessageFields = {}
  try {
    const json = parseJson(body)
    if (Array.isArray(json)) return { type: `batch of ${json.length}` }
    if (!isObject(json)) return { fault: 'The body must be a JSON object.' }
    const { type, event, groupId, name, userId = json['User ID'], anonymousId } = json
    fields = { type: text(type), name: text(event ?? groupId ?? name), user: text(userId ?? anonymousId) }
    checkMessage(json)
    return fields
  } catch (error) {
    const [rule = '', found = ''] = (error as Error).message.split(/(?<=\.) /)
    return { ...fields, fault: `${rule} ${found}` }
  }
}

function text(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, LONGEST)
}
