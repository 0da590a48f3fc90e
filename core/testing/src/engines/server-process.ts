import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { engineFailed } from './errors.ts'
import { engineUser, guardServer } from './work-folder.ts'

const run = promisify(execFile)

/** A server of a test. `await using` ends its processes and removes its files, also when the test process is killed. */
export interface RunningEngine extends AsyncDisposable {
  /** On 127.0.0.1. It stays the same when the server starts again. */
  readonly port: number
  /** Address with user and password, for client libraries. */
  readonly url: string
  /** Starts the server again after `stop` or `kill`; returns when it accepts connections. */
  start(): Promise<void>
  /** Shuts the server down as an operator does. */
  stop(): Promise<void>
  /** Kills all processes of the server with SIGKILL, as a power cut does. */
  kill(): Promise<void>
  /** The end of what the server logged. */
  log(): Promise<string>
}

export interface ServerOptions {
  readonly name: string
  readonly folder: string
  readonly port: number
  readonly command: readonly [program: string, ...args: string[]]
  /** Asked until it returns true. */
  readonly isReady: () => Promise<boolean>
  /** Shuts down and keeps the data. */
  readonly stopSignal: NodeJS.Signals
  /** Ends at once and leaves no resource of the operating system behind. */
  readonly endSignal: 'QUIT' | 'KILL'
  /** Frees what the ended server has left in the operating system, before its files are removed. */
  readonly release?: () => Promise<void>
}

/** Machines that run four test processes are slow. */
const WAIT_MS = 30_000
const POLL_MS = 10
const LOG_BYTES = 4096

/** A server process with its log and its life cycle. */
export class ServerProcess {
  readonly #options: ServerOptions
  #child: ChildProcess | undefined

  constructor(options: ServerOptions) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#child !== undefined
  }

  async start(): Promise<void> {
    if (this.#child) return
    const child = this.#spawn()
    const end = performance.now() + WAIT_MS
    while (!(await this.#options.isReady())) {
      if (this.#child !== child) throw this.#failure(`ended at its start (${child.exitCode ?? child.signalCode})`)
      if (performance.now() > end) {
        await this.kill()
        throw this.#failure(`accepts no connections after ${WAIT_MS / 1000} s`)
      }
      await sleep(POLL_MS)
    }
    if (this.#child !== child) throw this.#failure(`ended at its start; another server uses port ${this.#options.port}`)
  }

  /** The first start: a server that fails to start leaves no file behind. */
  async open(): Promise<void> {
    try {
      await this.start()
    } catch (error) {
      await this[Symbol.asyncDispose]()
      throw error
    }
  }

  stop(): Promise<void> {
    return this.#end(this.#options.stopSignal)
  }

  /** Children first, while their parent is stopped: it can neither replace them nor free their process ids. */
  async kill(): Promise<void> {
    const child = this.#child
    if (!child?.pid) return
    child.kill('SIGSTOP')
    while (!/[TZX]|^$/.test(stateOf(child.pid))) await sleep(1)
    const children = childrenOf(child.pid)
    for (const pid of children) process.kill(pid, 'SIGKILL')
    await this.#end('SIGKILL')
    while (children.some(isAlive)) await sleep(POLL_MS)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end(`SIG${this.#options.endSignal}`)
    await this.#options.release?.()
    await rm(this.#options.folder, { recursive: true, force: true, maxRetries: 5 })
  }

  log(): Promise<string> {
    return readFile(this.#logFile, 'utf8').then(lastLines)
  }

  get #logFile(): string {
    return join(this.#options.folder, 'log')
  }

  #spawn(): ChildProcess {
    const { folder, command, endSignal } = this.#options
    const log = openSync(this.#logFile, 'a')
    const [program, ...args] = command
    const child = spawn(program, args, { ...engineUser, cwd: folder, env: engineEnv(), stdio: ['ignore', log, log] })
    closeSync(log)
    this.#child = child
    const forget = child.pid === undefined ? () => {} : guardServer(child.pid, endSignal)
    child.on('error', () => {}) // a child without process id; 'exit' does not follow
    const gone = () => {
      forget()
      if (this.#child === child) this.#child = undefined
    }
    if (child.pid === undefined) gone()
    else child.once('exit', gone)
    return child
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (!child) return
    const exit = once(child, 'exit')
    child.kill(signal)
    using timer = timeout(WAIT_MS)
    await Promise.race([exit, timer.passed])
    if (this.#child !== child) return
    child.kill('SIGKILL')
    await exit
    throw this.#failure(`did not end ${WAIT_MS / 1000} s after ${signal}`)
  }

  #failure(what: string): Error {
    return engineFailed(this.#options.name, what, lastLines(readFileSync(this.#logFile, 'utf8')))
  }
}

function timeout(ms: number): Disposable & { readonly passed: Promise<void> } {
  const abort = new AbortController()
  const passed = sleep(ms, undefined, { signal: abort.signal }).catch(() => {})
  return { passed, [Symbol.dispose]: () => abort.abort() }
}

const lastLines = (text: string) => text.slice(-LOG_BYTES)

/** Programs of PostgreSQL read PG… variables, and messages in another language are hard to find. */
const engineEnv = () => ({ PATH: process.env.PATH, LC_ALL: 'C', HOME: '/nonexistent' })

export interface ProgramOptions {
  /** The name of the engine, for errors. */
  readonly name: string
  readonly folder: string
  /** Variables for secrets: other users can read the arguments of a process. */
  readonly env?: Readonly<Record<string, string>>
}

/** Runs a program of an engine to its end, as the user of the engine. */
export async function runProgram(program: string, args: readonly string[], { name, folder, env }: ProgramOptions): Promise<void> {
  const options = { ...engineUser, cwd: folder, env: { ...engineEnv(), ...env }, timeout: WAIT_MS }
  await run(program, args, options).catch((error: Error & { stderr?: string; stdout?: string }) => {
    const output = `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message
    throw engineFailed(name, `needs ${basename(program)}, which failed`, lastLines(output))
  })
}

/** The text of a file; empty where there is none. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const childrenOf = (pid: number): number[] => textOf(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)

/** The letter that proc(5) lists: T is stopped, Z has ended; empty for none. */
const stateOf = (pid: number): string => /^\d+ \(.*\) (\w)/s.exec(textOf(`/proc/${pid}/stat`))?.[1] ?? ''

const isAlive = (pid: number): boolean => !/[ZX]|^$/.test(stateOf(pid))

/** The first bytes that the server of a port answers; empty where it accepts no connection or closes it. */
export function firstAnswer(port: number, question: Buffer | string): Promise<string> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 1000 })
    const answered = (text: string) => {
      socket.destroy()
      resolve(text)
    }
    socket.once('connect', () => socket.write(question))
    socket.once('data', bytes => answered(bytes.toString('latin1')))
    socket.on('error', () => answered(''))
    for (const event of ['end', 'timeout', 'close']) socket.once(event, () => answered(''))
  })
}
