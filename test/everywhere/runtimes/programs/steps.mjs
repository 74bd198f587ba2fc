// Runs steps side by side and prints the outcome of each on a line of its own.

const SLOWEST_MS = 20_000

export async function runSteps(steps) {
  await Promise.all(
    Object.entries(steps).map(async ([step, run]) => {
      const outcome = await within(run()).catch((error) => ({ threw: `${error.name}: ${error.message}` }))
      console.log(JSON.stringify({ step, outcome }))
    }),
  )
}

async function within(promise) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not over after ${SLOWEST_MS} ms`)), SLOWEST_MS)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
