import { receiver } from '$lib/receiver'

export function init() {
  receiver.start()
  process.once('sveltekit:shutdown', () => receiver.close())
}
