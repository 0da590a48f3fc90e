import type { Readable } from 'node:stream'
import { systemContext } from '@svc/core'
import type { Isolation, IsolationRequest } from '@svc/core/contracts'
import { type IsolatedProcess, type ProcessOptions, startProcess } from './isolated-process.ts'

/** Processes that start at a time: each uses about one core until it waits. */
const AT_ONCE = 4
/** Milliseconds after which a process that no setup has taken is ended. */
const UNTAKEN_MS = 30_000

type Handlers = Pick<ProcessOptions, 'onError' | 'onLeft' | 'onOutput'>

/** A process that waits for the setup of its plugin. It has run no code of the plugin. */
interface Waiting {
  readonly process: IsolatedProcess
  /** Passes its output and errors on, also the earlier ones. */
  attach(options: Handlers): void
}

/**
 * Starts the processes of a host's isolated plugins at a time. The setups run one after the other, and a sandbox takes most of
 * the time of a setup. The code of a plugin still runs only in its own setup.
 */
export class Prestarts {
  readonly #planned = new Map<string, IsolationRequest>()
  readonly #begun = new Map<string, Promise<Waiting | undefined>>()
  readonly #ending = new AbortController()
  #timer: NodeJS.Timeout | undefined

  /** Plans the process of an instance, before the setups. */
  plan(request: IsolationRequest): void {
    this.#planned.set(keyOf(request), request)
  }

  /** Starts the planned processes. Called by the first setup, which knows the policy. */
  begin(isolation: Isolation): void {
    const open = [...this.#planned].filter(([key]) => !this.#begun.has(key)).values()
    this.#planned.clear()
    const places = Array.from({ length: AT_ONCE }, () => Promise.resolve())
    for (const [at, [key, request]] of [...open].entries()) {
      const started = places[at % AT_ONCE]!.then(() => this.#start(isolation, request))
      this.#begun.set(key, started)
      places[at % AT_ONCE] = started.then(() => {})
    }
    if (this.#begun.size > 0) this.#timer ??= setTimeout(() => void this.end(), UNTAKEN_MS).unref()
  }

  /** The process for this request, if it was started and still runs. */
  async take(request: IsolationRequest, options: ProcessOptions): Promise<IsolatedProcess | undefined> {
    const key = keyOf(request)
    this.#planned.delete(key)
    const started = this.#begun.get(key)
    this.#begun.delete(key)
    const waiting = await started
    if (waiting === undefined || waiting.process.channel.signal.aborted) return undefined
    waiting.attach(options)
    return waiting.process
  }

  /** Ends the processes that no setup has taken. */
  async end(): Promise<void> {
    clearTimeout(this.#timer)
    this.#ending.abort()
    this.#planned.clear()
    const left = [...this.#begun.values()]
    this.#begun.clear()
    await Promise.all(left.map(async started => (await started)?.process.end()))
  }

  /** Without a process, the setup starts one itself, and reports why that fails. */
  async #start(isolation: Isolation, request: IsolationRequest): Promise<Waiting | undefined> {
    if (this.#ending.signal.aborted) return undefined
    const outputs: [stream: Readable, name: 'stdout' | 'stderr'][] = []
    let given: Handlers = {}
    const options: ProcessOptions = {
      closeLimitMs: CLOSE_MS,
      onError: (error, where) => given.onError?.(error, where),
      onLeft: left => given.onLeft?.(left),
      onOutput: (stream, name) => void outputs.push([stream, name]),
    }
    try {
      const process = await startProcess(isolation, request, systemContext(this.#ending.signal), options)
      return {
        process,
        attach(taken) {
          given = taken
          for (const [stream, name] of outputs.splice(0)) taken.onOutput?.(stream, name)
        },
      }
    } catch {
      return undefined
    }
  }
}

const CLOSE_MS = 2000

/** Two requests with one key start the same process. */
const keyOf = ({ plugin, instance, permissions, config }: IsolationRequest): string =>
  JSON.stringify([plugin, instance, permissions, config])
