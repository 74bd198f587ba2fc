export async function register() {
  if (process.env.NEXT_RUNTIME === 'nodejs') {
    const { receiver } = await import('./hooks')
    receiver.start()
  }
}
