// The common part of all engines of `bench:workflows`: runs of ten steps, with a number at once and a duration.
export const STEPS = Array.from({ length: 10 }, (_, i) => i)

/** The work of a step: almost none, so that only the engine is measured. */
export const work = async i => ({ value: i + 1 })

/**
 * Reports to the parent that it is ready and runs the requested measurements. `kinds` are runs that return the output of their
 * last step.
 */
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
