import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runChild } from '@svc/worker-pool/processes'
import { ProcessSandbox, type ProcessLimits, type ProcessRequest } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { describeWith } from '../../../../../test/support/needs.ts'

/** A group of tests that need bubblewrap and its namespaces; they are skipped with the reason where it is missing. */
export const withSandbox = (title: string, cases: () => void) => describeWith('bubblewrap', title, cases)

export interface Wanted extends Omit<Partial<ProcessRequest>, 'limits'> {
  readonly limits?: Partial<ProcessLimits>
  readonly input?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

const LIMITS: ProcessLimits = { networkAccess: false, filesystemReadonly: true, allowedPaths: [] }

/** One sandbox for all cases of a group, each with a folder of its own. */
export function boxed(): Box {
  const box = {} as { -readonly [K in keyof Box]: Box[K] }
  let cases = 0
  before(async () => Object.assign(box, await openSandbox()))
  beforeEach(() => box.begin(`case-${++cases}`))
  after(() => box[Symbol.asyncDispose]())
  return box
}
export type Box = Awaited<ReturnType<typeof openSandbox>>

/** The plugin, with a folder of the test's own and an svc home apart from it, or one that is there already. */
export async function openSandbox(existingHome?: string) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-sandbox-')))
  let current = folder
  const at = (...parts: string[]) => join(current, ...parts)
  const home = (...parts: string[]) => join(folder, 'home', ...parts)
  const before = process.env.SVC_HOME
  process.env.SVC_HOME = existingHome ?? home()
  await mkdir(home())
  await writeFile(home('key'), 'the secret of the home\n')
  const host = await testHost([new URL('../..', import.meta.url)])
  const sandbox = host.service(ProcessSandbox)
  const ctx = testContext()
  const request = (command: string, args: readonly string[], { limits, ...more }: Wanted): ProcessRequest => ({
    command,
    args,
    env: {},
    ...more,
    limits: { ...LIMITS, ...limits },
  })

  /** Runs a program in the sandbox to its end. */
  async function run(command: string, args: readonly string[], { input, timeoutMs = 15_000, signal, ...wanted }: Wanted = {}) {
    const { id, enforced, ...line } = await sandbox.wrap(request(command, args, wanted), ctx)
    const options = { contained: true, timeoutMs, most: 100_000, floodBytes: 1_000_000, graceMs: 100 }
    try {
      const ended = await runChild({ ...line, ...options, ...(input === undefined ? {} : { input }), ...(signal && { signal }) })
      const met = await sandbox.release(id, ctx)
      return { code: ended.code, stopped: ended.stopped, out: ended.stdout.text, err: ended.stderr.text, met, enforced }
    } finally {
      await sandbox.release(id, ctx)
    }
  }
  const close = async () => {
    await host.close()
    if (before === undefined) delete process.env.SVC_HOME
    else process.env.SVC_HOME = before
    await rm(folder, { recursive: true, force: true })
  }
  async function begin(name: string) {
    current = join(folder, name)
    await mkdir(current)
  }
  return {
    begin,
    at,
    home,
    sandbox,
    ctx,
    run,
    shell: (script: string, wanted: Wanted = {}) => run('sh', ['-c', script], wanted),
    wrap: (command: string, args: readonly string[] = [], wanted: Wanted = {}) =>
      sandbox.wrap(request(command, args, wanted), ctx),
    async write(path: string, text: string) {
      await mkdir(dirname(at(path)), { recursive: true })
      await writeFile(at(path), text)
      await chmod(at(path), 0o755)
      return at(path)
    },
    [Symbol.asyncDispose]: close,
  }
}

/** What a promise is rejected with. */
export const refusal = (running: Promise<unknown>): Promise<Error & { code?: string; hint?: string }> =>
  running.then(
    () => {
      throw new Error('it was not refused')
    },
    error => error
  )
