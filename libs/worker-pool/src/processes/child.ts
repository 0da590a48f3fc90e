import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { blockInheritedFiles } from '@svc/runtime'
import { drained } from './drained.ts'
import { notStarted, stuck } from './errors.ts'
import { killContained, MARK, signalGroup, sweep } from './group.ts'
import { lastBytes } from './last-bytes.ts'

export interface ChildOptions {
  readonly file: string
  readonly args: readonly string[]
  /** All its variables: nothing of ours is added but the mark `SVC_CHILD`, by which what it starts is known. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Ends it as `end` does. */
  readonly signal?: AbortSignal
  /** Milliseconds from SIGTERM to SIGKILL; default 2000. */
  readonly graceMs?: number
  /** Bytes of its standard error that `errorTail` keeps; default 8192. */
  readonly tailBytes?: number
  /** True where its end is the end of all that it started, whatever these do: a process of `ProcessSandbox`, which has a process namespace. Then nobody is looked for, and no mark is set; and what would end it asks for no SIGTERM, which nobody in there would ever see. */
  readonly contained?: boolean
}

/** How a process ended: one of both is null. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface EndOptions {
  /** Milliseconds that it has to end by itself once its standard input is closed, before SIGTERM; default 0. */
  readonly politeMs?: number
}

/** A running process, and all that it starts. Its streams have listeners for their errors: a broken pipe ends nobody. */
export interface Child extends AsyncDisposable {
  readonly pid: number
  readonly stdin: Writable
  /** Not read by anybody yet: who does not want it calls `resume`, or the process waits. */
  readonly stdout: Readable
  /** Is read already; further listeners may look. */
  readonly stderr: Readable
  /** The end of what it wrote to its standard error, for a person. */
  errorTail(): string
  /** When it, and all that it left behind, has ended, and `errorTail` is whole. Never rejects. What it wrote may still lie in `stdout`. */
  readonly exited: Promise<Exit>
  /** Closes its standard input, then SIGTERM to its group (not where it is contained), then SIGKILL. Called twice it is one end. Throws CHILD_STUCK where the kernel does not let it go. */
  end(options?: EndOptions): Promise<Exit>
  /** SIGKILL to its group at once. */
  kill(): void
}

const GRACE_MS = 2_000
const TAIL_BYTES = 8_192
/** After SIGKILL the kernel needs a moment; a loaded machine a longer one. */
const STUCK_MS = 10_000

/** Starts a process in a group of its own. Throws CHILD_NOT_STARTED, and what the signal aborted with. */
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
  const passes = (ms: number) => within(exited, ms)
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

  // Who aborted does not wait; that it does not end is told to who asks `end`.
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
  child.on('error', () => {}) // a signal that could not be sent: `end` sees that it lives
  const ended = await exit.promise
  living.delete(child)
  if (mark !== undefined) await sweep(child.pid!, mark)
  await drained(child.stderr)
  return ended
}

/** Whether something happens in time. */
async function within(event: Promise<unknown>, ms: number): Promise<boolean> {
  const late = Promise.withResolvers<false>()
  const timer = setTimeout(late.resolve, ms, false)
  try {
    return await Promise.race([event.then(() => true), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** What must not outlive this process where nobody has ended it. */
const living = new Map<Process, boolean>()
process.on('exit', () => {
  for (const [child, contained] of living) killAll(child, contained)
})

const killAll = ({ pid }: Process, contained: boolean) => (contained ? killContained(pid!) : signalGroup(pid!, 'SIGKILL'))

/** Keeps the last bytes of a stream, which it reads to its end; answers them as text. */
function tailOf(stream: Readable, most: number): () => string {
  const kept = lastBytes(most)
  stream.on('data', (chunk: Buffer) => kept.add(chunk))
  return () => kept.bytes().toString().trim()
}
