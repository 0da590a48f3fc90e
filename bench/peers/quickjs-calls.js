/** Makes the requested number of calls one after the other. Reports their durations and the processor time of all threads. */
export function serveCalls(run) {
  process.on('message', async ({ code, expected, calls, fresh }) => {
    const times = []
    const before = process.cpuUsage()
    for (let call = 0; call < calls; call++) {
      const began = performance.now()
      const value = await run(code, fresh)
      if (value !== expected) throw new Error(`${code} is ${value}, not ${expected}`)
      times.push(performance.now() - began)
    }
    const { user, system } = process.cpuUsage(before)
    process.send({ times, cpu: (user + system) / calls })
  })
  process.on('disconnect', () => process.exit())
  process.send({ ready: true })
}
