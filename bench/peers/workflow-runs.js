// What every engine of `bench:workflows` does: runs of ten steps, so many at once, for so long.
export const STEPS = Array.from({ length: 10 }, (_, i) => i)

/** The work of a step: as good as none, so that what is measured is the engine. */
export const work = async i => ({ value: i + 1 })

/** Tells the parent that it is ready, and measures what it asks for: `kinds` are runs that answer the output of their last step. */
export function serveRuns(kinds, more = {}) {
  process.on('message', async ({ kind, at, ms, ...rest }) => {
    if (more[kind]) await more[kind](rest)
    process.send(more[kind] ? {} : await measured(kinds[kind], at, ms))
  })
  process.on('disconnect', () => process.exit())
  process.send('ready')
}

async function measured(run, at, ms) {
  let runs = 0
  const before = process.cpuUsage()
  const began = performance.now()
  const until = began + ms
  const lane = async () => {
    do {
      const { value } = await run()
      if (value !== STEPS.length) throw new Error(`a run answered ${value}`)
      runs += 1
    } while (performance.now() < until)
  }
  await Promise.all(Array.from({ length: at }, lane))
  const { user, system } = process.cpuUsage(before)
  return {
    stepsPerSecond: (runs * STEPS.length * 1000) / (performance.now() - began),
    cpu: (user + system) / (runs * STEPS.length),
  }
}
