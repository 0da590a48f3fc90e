// The common part of the processes of `bench:cluster`.

/** Callers that each do the next piece of work when theirs is done. */
export async function loaded(work, { callers, ms }) {
  const times = []
  const began = performance.now()
  const until = began + ms
  const lane = async () => {
    for (let now = performance.now(); now < until; ) {
      await work()
      const done = performance.now()
      times.push(done - now)
      now = done
    }
  }
  await Promise.all(Array.from({ length: callers }, lane))
  return { perSecond: (times.length * 1000) / (performance.now() - began), ...spread(times) }
}

/** Milliseconds of a list of calls. */
export function spread(times) {
  const sorted = times.toSorted((a, b) => a - b)
  return { p50: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN, p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN }
}

/** Reports to the parent that it is ready, and runs the measurements that it asks for, by their kind. */
export function serve(kinds) {
  process.on('message', async load => process.send(await kinds[load.kind](load)))
  process.on('disconnect', () => process.exit())
  process.send('ready')
}

let last = 0
/** A text that no other call of this process gets. */
export const nextKey = () => `${process.pid}-${(last += 1).toString(36).padStart(8, '0')}`

/** A record of 1 KiB. */
export const RECORD = { owner: 'anna', text: 'x'.repeat(990) }
