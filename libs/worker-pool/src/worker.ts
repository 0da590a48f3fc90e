import { fork } from 'node:child_process'
import { codeOf } from '@svc/core'
import { workClosed } from '@svc/plugin-kit'
import { fromWorker, lostWorker, workFailed, workTimeout } from './errors.ts'
import type { FromWorker, PoolTask } from './messages.ts'

/** Options of one worker. */
interface WorkerOptions {
  readonly file: URL
  readonly memoryMb: number
}

/** A process that runs one task at a time. It is killed when a task exceeds its limits. */
export interface ChildWorker {
  /** Whether the worker can take a task. */
  readonly alive: boolean
  /** Runs a task. Its time starts when the worker starts it. */
  run(job: Omit<PoolTask, 'lastMs'>, limits: { readonly timeMs: number; readonly signal: AbortSignal }): Promise<unknown>
  /** Kills the worker. A running task fails with `reason`. */
  end(reason?: Error): Promise<void>
}

/** Maximum milliseconds until a worker has started. */
const START_MS = 15_000
/** Milliseconds beyond its time limit after which a task without a host ends. */
const ORPHAN_MS = 1_000

/** No `eval`, no writes, no child processes; reads are needed to load modules. These are safeguards for trusted code, not a sandbox. */
const GUARD = ['--disallow-code-generation-from-strings', '--disable-proto=delete', '--permission', '--allow-fs-read=*']
const INHERITED = /^(--conditions|-C)\b/

type Current = { readonly work: string; readonly answer: PromiseWithResolvers<unknown> }

const forked = (file: URL, memoryMb: number) =>
  fork(file, [], {
    execArgv: [...process.execArgv.filter(item => INHERITED.test(item)), `--max-old-space-size=${memoryMb}`, ...GUARD],
    // none of the host's secrets
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })

export function startWorker({ file, memoryMb }: WorkerOptions): ChildWorker {
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
    // `close` waits for the exit
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
      // a running task keeps the host alive
      hold('ref')
      let timer = setTimeout(stop, START_MS, workFailed(name, 'its process did not start'))
      try {
        await Promise.race([ready.promise, answer.promise])
        clearTimeout(timer)
        timer = setTimeout(stop, timeMs, workTimeout(name, timeMs))
        child.send({ name, input, lastMs: timeMs + ORPHAN_MS } satisfies PoolTask, error => error && stop(error))
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
