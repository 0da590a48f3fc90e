import { codeOf, svcError } from '@svc/core'
import type { Clock, ClockLog } from './clock.ts'

/** Makes a clock; `log` notes what it does. */
export function createClock(log: ClockLog = { produced: 0, finished: [], aborted: [] }): Clock {
  const aborted = (signal: AbortSignal) =>
    new Promise<void>(resolve => {
      const done = () => {
        log.aborted.push(codeOf(signal.reason) ?? String(signal.reason))
        resolve()
      }
      if (signal.aborted) done()
      else signal.addEventListener('abort', done, { once: true })
    })
  return {
    echo: async value => value,
    circumstances: async ({ signal, ...rest }) => ({ ...rest, aborted: signal.aborted }),
    async fail(how) {
      if (how === 'foreign') throw new TypeError('no such thing')
      const details = how === 'unplain' ? { why: () => 1 } : { retryable: true, at: new Date(0) }
      throw svcError('CLOCK_BROKEN', 'the spring is gone', { details, plugin: 'clocks', where: 'spring', hint: 'wind it' })
    },
    async wait({ signal }) {
      await aborted(signal)
      return String((signal.reason as { code?: string }).code)
    },
    hang: () => new Promise(() => {}),
    bytes: async size => new Uint8Array(size).fill(7),
    async *count(to) {
      try {
        for (let i = 1; i <= to; i++) {
          log.produced = i
          yield i
        }
      } finally {
        log.finished.push('count')
      }
    },
    async *tick({ signal }) {
      try {
        yield 1
        await aborted(signal)
        signal.throwIfAborted()
      } finally {
        log.finished.push('tick')
      }
    },
    async *cheat() {
      yield 1
      yield { deep: [() => 1] }
    },
  }
}
