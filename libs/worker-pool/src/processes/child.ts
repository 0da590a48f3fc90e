import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { blockInheritedFiles } from '@svc/runtime'
import { notStarted, stuck } from './errors.ts'
import { killContained, MARK, signalGroup, sweep } from './group.ts'
import { drained, lastBytes, gather, type CapturedOutput } from './output.ts'

export interface ChildOptions {
  readonly file: string
  readonly args: readonly string[]
  /** All its variables. svc adds only the mark `SVC_CHILD`, which identifies its descendants. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Ends the process as `end` does. */
  readonly signal?: AbortSignal
  /** Milliseconds from SIGTERM to SIGKILL; default 2000. */
  readonly graceMs?: number
  /** Bytes of its standard error that `errorTail` keeps; default 8192. */
  readonly tailBytes?: number
  /**
   * True for a process of `ProcessSandbox`, which has a process namespace: its exit ends all its descendants. Then the library sets no mark, does not search
   * for descendants, and sends no SIGTERM, which the namespace would not pass on.
   */
  readonly contained?: boolean
}

/** How a process ended: one of the two is null. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface EndOptions {
  /** Milliseconds between the end of its standard input and SIGTERM; default 0. */
  readonly politeMs?: number
}

/** A running process and its descendants. Its streams have error listeners: a broken pipe does not end the host. */
export interface Child extends AsyncDisposable {
  readonly pid: number
  readonly stdin: Writable
  /** Not read by the library. Read it or call `resume`, or the process blocks. */
  readonly stdout: Readable
  /** Read by the library. You can add further listeners. */
  readonly stderr: Readable
  /** The last bytes of its standard error, for a person. */
  errorTail(): string
  /** Resolves when the process and its descendants have ended and `errorTail` is complete. Never rejects. `stdout` can still hold unread output. */
  readonly exited: Promise<Exit>
  /**
   * Closes its standard input, then sends SIGTERM to its group (not if it is contained), then SIGKILL. Further calls return the same promise. Throws
   * CHILD_STUCK if the process does not exit after SIGKILL.
   */
  end(options?: EndOptions): Promise<Exit>
  /** Sends SIGKILL to its group at once. */
  kill(): void
}

const GRACE_MS = 2_000
const TAIL_BYTES = 8_192
/** Milliseconds for the kernel to end a process after SIGKILL, on a loaded machine. */
const STUCK_MS = 10_000

/** Starts a process in its own group. Throws CHILD_NOT_STARTED, and the reason of the signal. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const { signal, contained = false } = options
  signal?.throwIfAborted()
  const mark = contained ? undefined : randomUUID()
  const started = await spawned(options, mark)
  const { stdin, stdout, stderr } = started
  const pid = started.pid!
  const exited = endOf(started, mark)
  const errorTail = tailOf(stderr, options.tailBytes ?? TAIL_BYTES)
  for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {})

  const kill = () => isAlive(started) && killAll(started, contained)
  const passes = (ms: number) => happensWithin(exited, ms)
  let ending: Promise<Exit> | undefined
  async function stop({ politeMs = 0 }: EndOptions): Promise<Exit> {
    stdin.end()
    if (politeMs > 0 && (await passes(politeMs))) return exited
    if (contained) kill()
    else if (isAlive(started)) signalGroup(pid, 'SIGTERM')
    if (await passes(options.graceMs ?? GRACE_MS)) return exited
    kill()
    if (await passes(STUCK_MS)) return exited
    throw stuck(pid)
  }
  const end = (how: EndOptions = {}) => (ending ??= stop(how))

  // an abort does not wait; `end` reports a process that does not exit
  const onAbort = () => void end().catch(() => {})
  signal?.addEventListener('abort', onAbort, { once: true })
  void exited.then(() => signal?.removeEventListener('abort', onAbort))
  if (signal?.aborted) onAbort()
  return {
    pid,
    stdin,
    stdout,
    stderr,
    errorTail,
    exited,
    end,
    kill: () => void kill(),
    async [Symbol.asyncDispose]() {
      await end()
    },
  }
}

type Process = ChildProcessByStdio<Writable, Readable, Readable>

const isAlive = ({ exitCode, signalCode }: Process) => exitCode === null && signalCode === null

async function spawned({ file, args, env, cwd, contained = false }: ChildOptions, mark: string | undefined): Promise<Process> {
  try {
    const child = spawn(file, [...args], {
      env: { ...env, ...(mark === undefined ? {} : { [MARK]: mark }) },
      ...(cwd === undefined ? {} : { cwd }),
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe', ...blockInheritedFiles()],
    }) as Process
    await once(child, 'spawn')
    living.set(child, contained)
    return child
  } catch (error) {
    throw notStarted(file, error)
  }
}

async function endOf(child: Process, mark: string | undefined): Promise<Exit> {
  const exit = Promise.withResolvers<Exit>()
  child.on('exit', (code, signal) => exit.resolve({ code, signal }))
  child.on('error', () => {}) // a signal that failed: `end` sees that the process runs
  const ended = await exit.promise
  living.delete(child)
  if (mark !== undefined) await sweep(child.pid!, mark)
  await drained(child.stderr)
  return ended
}

/** Whether an event happens in time. */
async function happensWithin(event: Promise<unknown>, ms: number): Promise<boolean> {
  const over = new AbortController()
  try {
    return await Promise.race([event.then(() => true), sleep(ms, false, { signal: over.signal })])
  } finally {
    over.abort()
  }
}

/** Running children, which must not outlive this process. */
const living = new Map<Process, boolean>()
process.on('exit', () => {
  for (const [child, contained] of living) killAll(child, contained)
})

const killAll = ({ pid }: Process, contained: boolean) => (contained ? killContained(pid!) : signalGroup(pid!, 'SIGKILL'))

/** Reads a stream to its end. The returned function gives its last bytes as text. */
function tailOf(stream: Readable, most: number): () => string {
  const kept = lastBytes(most)
  stream.on('data', (chunk: Buffer) => kept.add(chunk))
  return () => kept.bytes().toString().trim()
}

export interface RunOptions extends ChildOptions {
  /** Its whole standard input. */
  readonly input?: string | Uint8Array
  /** Maximum milliseconds of the run. */
  readonly timeoutMs: number
  /** Bytes to keep of each of its two outputs. */
  readonly most: number
  /** Bytes of both outputs after which the process is killed: it would probably never stop. */
  readonly floodBytes: number
}

export interface RunResult extends Exit {
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
  /** Why the process was ended, if it did not exit by itself. */
  readonly stopped?: 'timeout' | 'flood'
  readonly durationMs: number
}

/** Runs a process to its end. Throws CHILD_NOT_STARTED, and the reason of the signal once all processes have ended. */
export async function runChild(options: RunOptions): Promise<RunResult> {
  const begun = performance.now()
  await using child = await startChild(options)
  let stopped: RunResult['stopped']
  let left = options.floodBytes
  const stop = (why: 'timeout' | 'flood') => {
    stopped ??= why
    if (why === 'flood') child.kill()
    // the disposal below reports a process that does not exit
    else void child.end().catch(() => {})
  }
  const count = (bytes: number) => {
    left -= bytes
    if (left < 0) stop('flood')
  }
  const stdout = gather(child.stdout, options.most, count)
  const stderr = gather(child.stderr, options.most, count)
  child.stdin.end(options.input ?? '')
  const timer = setTimeout(stop, options.timeoutMs, 'timeout')
  try {
    const exit = await child.exited
    await drained(child.stdout)
    options.signal?.throwIfAborted()
    const durationMs = Math.round(performance.now() - begun)
    return { ...exit, stdout: stdout(), stderr: stderr(), durationMs, ...(stopped === undefined ? {} : { stopped }) }
  } finally {
    clearTimeout(timer)
  }
}
