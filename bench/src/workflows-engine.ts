import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'

/** Runs of one kind: how many at once and for how long. `each`: in a sequence, with one commit per step. */
export interface Load {
  readonly kind: 'sequence' | 'parallel' | 'each'
  readonly at: number
  readonly ms: number
}

/** The results of an engine. */
interface Ran {
  readonly stepsPerSecond: number
  /** Microseconds of processor time per step, over all threads. */
  readonly cpu: number
}

/** An engine in a process of its own. */
export interface Engine {
  readonly run: (load: Load) => Promise<Ran>
  /** Stores this number of completed runs. */
  fill(count: number): Promise<void>
  end(): Promise<void>
}

/**
 * Starts a program of `peers`. It has all cores, because an engine has threads and no external load. `svc`: the arguments that
 * start svc.
 */
export async function startEngine(name: string, args: readonly string[], svc: readonly string[] = []): Promise<Engine> {
  const file = fileURLToPath(new URL(`../peers/${name}.js`, import.meta.url))
  const execArgv = svc.filter(word => word.startsWith('--conditions'))
  const child = fork(file, [...args], { execArgv, env: { ...process.env, NODE_ENV: 'production' } })
  // It inherits the single core of this process. Without taskset it has all cores anyway.
  spawnSync('taskset', ['-a', '-c', '-p', `0-${availableParallelism() - 1}`, String(child.pid)])
  const answer = async () => {
    const over = new AbortController()
    const { signal } = over
    const ended = once(child, 'exit', { signal }).then(() => Promise.reject(new Error(`${name} ended`)))
    try {
      const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as [Ran]
      return message
    } finally {
      ended.catch(() => {})
      over.abort()
    }
  }
  const ask = (message: object) => {
    child.send(message)
    return answer()
  }
  await answer()
  return {
    run: load => ask(load),
    fill: async count => void (await ask({ kind: 'fill', count })),
    async end() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
