import type { Control } from '@svc/runtime'
import type { Reloading } from './reloading.ts'

/** Whoever pauses the server and then forgets it must not keep it down. */
const LONGEST_MS = 300_000

/** Holds the server without workers while a command works on what they have open. One pause at a time: a second one waits for the first. */
export function createPausing(reloading: Reloading): Pick<Control, 'pause' | 'resume'> {
  const open: (() => ReturnType<Reloading['reload']>)[] = []
  return {
    async *pause({ signal }) {
      const paused = Promise.withResolvers<void>()
      const asked = Promise.withResolvers<void>()
      let timer: NodeJS.Timeout | undefined
      const done = reloading.pause('svc store restore', () => {
        timer = setTimeout(asked.resolve, LONGEST_MS)
        paused.resolve()
        return asked.promise
      })
      const resume = () => {
        clearTimeout(timer)
        asked.resolve()
        return done
      }
      open.push(resume)
      try {
        await Promise.race([paused.promise, done])
        yield 'paused'
        // a stream is read ahead: only a word or the reader's end is the end of the pause
        signal.addEventListener('abort', () => asked.resolve(), { once: true })
        if (!signal.aborted) await asked.promise
      } finally {
        open.splice(open.indexOf(resume), 1)
        await resume()
      }
    },
    resume: () => open[0]?.() ?? reloading.reload('svc'),
  }
}
