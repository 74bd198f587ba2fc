/** The settings of a running destination and the transport made from them. An update of the URLs or the secret replaces both. */

import { warnIfMisread } from '../kit/checks.ts'
import {
  applyChanges,
  type DestinationOptions,
  type DestinationSettings,
  readDestinationOptions,
} from './destination-options.ts'
import type { DestinationChanges } from './destination-types.ts'
import { createTransport, type Transport } from './transport.ts'

export type CurrentSettings = ReturnType<typeof createCurrentSettings>

export function createCurrentSettings(options: DestinationOptions) {
  let settings = readDestinationOptions(options)
  let transport = createTransport(settings)
  const transports = new Set([transport]) // A transport that an update replaced stays until its attempts have ended.
  warnIfMisread('sharedSecret', options.sharedSecret)

  function replaceTransport(next: DestinationSettings): void {
    const old = transport
    transport = createTransport(next)
    transports.add(transport)
    void old.close().finally(() => transports.delete(old))
  }

  return {
    get settings(): DestinationSettings {
      return settings
    },
    get transport(): Transport {
      return transport
    },
    /** Makes all of the changes, or none. Attempts under way end on the transport on which they began. */
    update(changes: DestinationChanges): void {
      const next = applyChanges(settings, changes)
      if (next.targets !== settings.targets || next.key !== settings.key) replaceTransport(next)
      settings = next
      warnIfMisread('sharedSecret', changes.sharedSecret)
    },
    /** Ends every attempt under way. */
    abort(): void {
      for (const each of transports) each.abort()
    },
    async close(): Promise<void> {
      await Promise.all([...transports].map((each) => each.close()))
    },
  }
}
