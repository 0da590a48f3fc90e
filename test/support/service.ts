import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { COMPILED, SVC } from './entry.ts'

export interface ServiceOptions {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** A home to use again; without it the service gets one of its own, gone with it. */
  readonly home?: string
  readonly cwd?: string
  /** Takes the port of its configuration, not a free one. */
  readonly ownPort?: boolean
  /** What starts it, `svc serve` in other words: `npm start --`. */
  readonly command?: readonly string[]
}

/** A real `svc serve` in processes of its own. */
export interface Service extends AsyncDisposable {
  readonly url: string
  readonly home: string
  readonly child: ChildProcess
  /** All it has printed so far. */
  output(): string
  /** Resolves when so many lines that fit have been printed. */
  seen(pattern: RegExp, times?: number): Promise<void>
  /** SIGTERM; the exit code. */
  stop(): Promise<number | null>
  /** SIGKILL of the whole group: supervisor and workers at once. */
  kill(): Promise<void>
}

export const newHome = () => mkdtemp(join(tmpdir(), 'svc-home-'))

/** Runs a test with a home of its own, gone with it. */
export async function inNewHome(run: (home: string) => Promise<void>): Promise<void> {
  const home = await newHome()
  try {
    await run(home)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** Starts the service on a free port and waits until it listens. Throws with its output when it ends instead. */
export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const home = options.home ?? (await newHome())
  const [program = '', ...words] = options.command ?? [process.execPath, ...SVC, 'serve']
  const child = spawn(program, [...words, ...(options.ownPort ? [] : ['--port', '0']), '--json', ...(options.args ?? [])], {
    env: { PATH: process.env.PATH, ...COMPILED, ...options.env, SVC_HOME: home },
    cwd: options.cwd ?? home,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const said: string[] = []
  child.stderr!.on('data', (data: Buffer) => said.push(data.toString()))
  const gone = once(child, 'exit')
  const lines = createInterface({ input: child.stdout! })
  const url = await ready(child, lines, said)
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (child.exitCode === null && child.signalCode === null)
      process.kill(signal === 'SIGKILL' || options.command ? -child.pid! : child.pid!, signal)
    await gone
  }
  return {
    url,
    home,
    child,
    output: () => said.join(''),
    seen: (pattern, times = 1) => untilLogged(lines, said, pattern, times),
    async stop() {
      await end('SIGTERM')
      return child.exitCode
    },
    kill: () => end('SIGKILL'),
    async [Symbol.asyncDispose]() {
      await end('SIGTERM')
      if (options.home === undefined) await rm(home, { recursive: true, force: true })
    },
  }
}

function untilLogged(lines: Interface, said: readonly string[], pattern: RegExp, times: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const look = () => said.filter(line => pattern.test(line)).length >= times && resolve()
  const gone = () => reject(new Error(`the service ended without saying ${pattern}:\n${said.join('')}`))
  lines.on('line', look).once('close', gone)
  look()
  return promise.finally(() => lines.off('line', look).off('close', gone))
}

function ready(child: ChildProcess, lines: Interface, said: string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  lines.on('line', line => {
    said.push(`${line}\n`)
    const fact = readyFact(line)
    if (fact) resolve(fact)
  })
  child.once('exit', code => reject(new Error(`the service ended with ${code}:\n${said.join('')}`)))
  return promise
}

function readyFact(line: string): string | undefined {
  if (!line.startsWith('{"event":"ready"')) return undefined
  return (JSON.parse(line) as { url: string }).url
}

/** Posts JSON and reads the answer. */
export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {}
): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Record<string, unknown> }
}
