import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { COMPILED } from '../../../test/support/entry.ts'
import { mayShare, runShared } from '../../../test/support/shared-process.ts'
import { SVC } from './entry.ts'

/** A home and a project folder of one test, outside the repository, and the processes in them. */
export interface Workspace extends AsyncDisposable {
  readonly home: string
  readonly folder: string
  write(name: string, content: string): Promise<string>
  /** Runs a command to its end. */
  svc(args: readonly string[], options?: RunOptions): Promise<Outcome>
  /** Starts `svc serve --port 0`; resolves once it listens. */
  serve(args?: readonly string[], options?: RunOptions): Promise<Server>
  start(args: readonly string[], options?: RunOptions): ChildProcess
}

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** The descriptor of a file for its standard output. */
  readonly stdout?: number
  /** What serves, in place of `serve --port 0`. */
  readonly command?: readonly string[]
}

interface Outcome {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

interface Server {
  readonly process: ChildProcess
  readonly url: string
  /** What it has written so far. */
  readonly out: () => string
  readonly err: () => string
  /** Resolves once the error stream has what matches. */
  said(pattern: RegExp): Promise<RegExpMatchArray>
  /** Sends a signal and waits for the end. */
  end(signal?: NodeJS.Signals): Promise<Outcome>
}

// npm is no part of these tests: what it adds to the environment would be taken for it.
const cleanEnv = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|SVC_|NO_COLOR|FORCE_COLOR)/.test(name)))

/** Creates an empty workspace. */
export async function makeWorkspace(): Promise<Workspace> {
  const base = await mkdtemp(join(tmpdir(), 'svc-cli-'))
  const home = join(base, 'home')
  const folder = join(base, 'project')
  await mkdir(folder)
  const running = new Set<ChildProcess>()
  const envOf = (options: RunOptions = {}) => ({ ...COMPILED, ...cleanEnv(), SVC_HOME: home, ...options.env })
  const start = (args: readonly string[], options?: RunOptions) => {
    const env = envOf(options)
    const child = spawn(process.execPath, [...SVC, ...args], {
      cwd: folder,
      env,
      stdio: ['pipe', options?.stdout ?? 'pipe', 'pipe'],
    })
    running.add(child)
    child.once('exit', () => running.delete(child))
    child.stdin!.on('error', () => {})
    child.stdin!.end(options?.input ?? '')
    return child
  }
  return {
    home,
    folder,
    start,
    async write(name, content) {
      const file = join(folder, name)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, content)
      return file
    },
    svc(args, options) {
      const command = { args, cwd: folder, env: envOf(options) }
      return options?.input === undefined && mayShare(command) ? runShared(command) : outcomeOf(start(args, options))
    },
    serve: (args = [], options) => listening(start([...(options?.command ?? ['serve', '--port', '0']), ...args], options)),
    async [Symbol.asyncDispose]() {
      await Promise.all([...running].map(child => (child.kill('SIGKILL'), once(child, 'exit'))))
      await rm(base, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  const [out, err, [code, signal]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'exit')])
  return { code, signal, out, err }
}

async function listening(child: ChildProcess): Promise<Server> {
  let out = ''
  let err = ''
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (out += chunk))
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (err += chunk))
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, out, err }))
  const said = async (pattern: RegExp): Promise<RegExpMatchArray> => {
    for (;;) {
      const found = err.match(pattern)
      if (found) return found
      const more = await Promise.race([once(child.stderr!, 'data'), ended])
      if (!Array.isArray(more) && !pattern.test(err))
        throw new Error(`svc ended with ${more.code} before it said ${pattern}:\n${err}`)
    }
  }
  const [, url = ''] = await said(/listens on (\S+)[\s\S]*press Ctrl-C to stop\n/)
  return {
    process: child,
    url,
    out: () => out,
    err: () => err,
    said,
    end(signal = 'SIGINT') {
      child.kill(signal)
      return ended
    },
  }
}
