import { fork } from 'node:child_process'
import { codeOf } from '@svc/core'
import { fromWorker, lostWorker, workClosed, workFailed, workTimeout } from './errors.ts'
import type { FromWorker, Job } from './messages.ts'

/** What one worker is given. */
interface WorkerOptions {
  readonly file: URL
  readonly memoryMb: number
}

/** A process that does one piece of work at a time and dies of the first that goes too far. */
export interface Worker {
  /** Whether it can be given work. */
  readonly alive: boolean
  /** Does one piece of work; the time counts from where the worker begins it. */
  run(job: Omit<Job, 'lastMs'>, limits: { readonly timeMs: number; readonly signal: AbortSignal }): Promise<unknown>
  /** Stops it, whatever it does; what it was doing fails with `reason`. */
  end(reason?: Error): Promise<void>
}

/** A worker that does not even start within this is broken, or the machine is. */
const START_MS = 15_000
/** How much longer than its time a piece of work lives whose host was killed. */
const ORPHAN_MS = 1_000

/** No code from texts, no writing, no further process; what it may read it reads to load its modules. Guard rails: the work itself is our own code. */
const GUARD = ['--disallow-code-generation-from-strings', '--disable-proto=delete', '--permission', '--allow-fs-read=*']
const INHERITED = /^(--conditions|-C)\b/

type Current = { readonly work: string; readonly answer: PromiseWithResolvers<unknown> }

const forked = (file: URL, memoryMb: number) =>
  fork(file, [], {
    execArgv: [...process.execArgv.filter(one => INHERITED.test(one)), `--max-old-space-size=${memoryMb}`, ...GUARD],
    // nothing of the host's secrets
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })

export function startWorker({ file, memoryMb }: WorkerOptions): Worker {
  const child = forked(file, memoryMb)
  const ready = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<void>()
  let alive = true
  let current: Current | undefined

  const hold = (how: 'ref' | 'unref') => {
    child[how]()
    child.channel?.[how]()
  }
  const end = (reason: Error = workClosed()): Promise<void> => {
    alive = false
    current?.answer.reject(reason)
    // its end is waited for
    hold('ref')
    child.kill('SIGKILL')
    return gone.promise
  }
  const lost = (why: string) => {
    alive = false
    if (current) current.answer.reject(lostWorker(current.work, why, memoryMb))
    gone.resolve()
  }
  child.on('message', (message: FromWorker) => {
    if ('ready' in message) ready.resolve()
    else if ('failure' in message) current?.answer.reject(fromWorker(current.work, message.failure, memoryMb))
    else current?.answer.resolve(message.value)
  })
  child.on('error', error => lost(codeOf(error) ?? error.message))
  child.on('exit', (code, signal) => lost(signal ?? String(code)))
  return {
    get alive() {
      return alive
    },
    end,
    async run({ name, input }, { timeMs, signal }) {
      signal.throwIfAborted()
      const { answer } = (current = { work: name, answer: Promise.withResolvers<unknown>() })
      answer.promise.catch(() => {})
      const stop = (reason: Error) => void end(reason)
      const onAbort = () => stop(signal.reason as Error)
      signal.addEventListener('abort', onAbort, { once: true })
      // while it works, the process waits for it
      hold('ref')
      let timer = setTimeout(stop, START_MS, workFailed(name, 'its process did not start'))
      try {
        await Promise.race([ready.promise, answer.promise])
        clearTimeout(timer)
        timer = setTimeout(stop, timeMs, workTimeout(name, timeMs))
        child.send({ name, input, lastMs: timeMs + ORPHAN_MS } satisfies Job, error => error && stop(error))
        return await answer.promise
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        current = undefined
        if (alive) hold('unref')
      }
    },
  }
}
