/** The settings of a running destination and the transport made from them, which an update replaces together. */

import { warnOfSecret } from '../options/checks.ts'
import { createTransport, type Transport } from '../sender/transport.ts'
import type { DestinationChanges } from './api.ts'
import {
  applyChanges,
  copyOptions,
  type DestinationOptions,
  type DestinationSettings,
  readDestinationOptions,
} from './options.ts'

export type CurrentSettings = ReturnType<typeof createCurrentSettings>

export function createCurrentSettings(options: DestinationOptions) {
  let settings = readDestinationOptions(options)
  let given = copyOptions(options)
  let transport = createTransport(settings)
  const retired = new Map<Transport, Promise<void>>()
  warnOfSecret('sharedSecret', options.sharedSecret)

  /** The options in force: copies of what the caller may have changed in place, and the queue that was not given. */
  function current(): DestinationOptions {
    const { targets, enabled, queue, ca } = settings
    const webhooks = targets.map(({ url, headers }) => ({ url, headers }))
    return { ...given, webhooks, enabled, queue, ...(ca && { ca: [...ca] }) }
  }

  return {
    get settings(): DestinationSettings {
      return settings
    },
    get transport(): Transport {
      return transport
    },
    setEnabled(enabled: boolean): void {
      settings = { ...settings, enabled }
    },
    /** Changes settings, all or none. Attempts under way end on the transport that they began with. */
    update(changes: DestinationChanges): void {
      const changed = applyChanges(current(), changes)
      const next = readDestinationOptions(changed)
      const [old, replacement] = [transport, createTransport(next)]
      const closing = old.close().finally(() => retired.delete(old))
      retired.set(old, closing)
      transport = replacement
      settings = next
      given = changed
      warnOfSecret('sharedSecret', changes.sharedSecret)
    },
    /** Ends every attempt under way, also of transports that an update replaced. */
    abort(): void {
      for (const each of [transport, ...retired.keys()]) each.abort()
    },
    async close(): Promise<void> {
      await Promise.all([transport.close(), ...retired.values()])
    },
  }
}
