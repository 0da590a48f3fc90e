import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type Bail,
  definePlugin,
  defineService,
  defineSlot,
  findConfig,
  type FindOptions,
  type HostOptions,
  type Plugin,
  type PluginEntry,
  type Series,
  type StartFailed,
  startHost,
  type SvcError,
  systemContext,
  type CallContext,
  type Waterfall,
} from '@svc/core'
import { failureOf } from '../../../../test/support/failure.ts'

/** A service with a hook of each kind, for tests. */
export interface Greeter {
  greet(name: string, ctx: CallContext): Promise<string>
}
interface GreeterHooks {
  before: Waterfall<string>
  refuse: Bail<string, string>
  greeted: Series<string>
}
export const Greeter = defineService<Greeter, GreeterHooks>('greeter', {
  api: 1,
  methods: { greet: 'call' },
  hooks: { before: 'waterfall', refuse: 'bail', greeted: 'series' },
})

/** A slot for tests. */
export interface Word {
  readonly text: string
  say(ctx: CallContext): Promise<string>
}
export const Words = defineSlot<Word>('words', { api: 1, methods: { say: 'call' } })
export const word = (text: string): Word => ({ text, say: async () => text })

export const ctx = systemContext(new AbortController().signal)

/** An inline plugin under a name. */
export const entry = (name: string, plugin: Plugin, more: Partial<PluginEntry> = {}): PluginEntry => ({
  name,
  use: plugin,
  ...more,
})

/** Provides `Greeter` and calls each of its hooks. */
export const greeter = () =>
  entry(
    'greeter',
    definePlugin({
      provides: Greeter,
      setup: scope => ({
        async greet(name, ctx) {
          const refused = await scope.hooks.refuse(name, ctx)
          if (refused !== undefined) return refused
          const text = `hello ${await scope.hooks.before(name, ctx)}`
          await scope.hooks.greeted(text, ctx)
          return text
        },
      }),
    })
  )

/** The problems that a start fails with. */
export async function problemsOf(options: HostOptions): Promise<readonly SvcError[]> {
  const started = startHost(options)
  const error = (await failureOf(started.then(host => host.close()))) as StartFailed
  if (error.code !== 'START_FAILED') throw error
  return error.problems
}

/** The only problem that a start fails with. */
export async function problemOf(options: HostOptions): Promise<SvcError> {
  const problems = await problemsOf(options)
  if (problems.length !== 1)
    throw new Error(`${problems.length} problems: ${problems.map(problem => problem.message).join('; ')}`)
  return problems[0]!
}

/** A folder of files that is gone after the test: `await using dir = await folder({ 'a/b.json': '{}' })`. */
export async function folder(files: Record<string, string | object> = {}) {
  const path = await mkdtemp(join(tmpdir(), 'svc-kernel-'))
  const write = async (name: string, content: string | object) => {
    const file = join(path, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
    return file
  }
  for (const [name, content] of Object.entries(files)) await write(name, content)
  return {
    path,
    url: pathToFileURL(`${path}/`).href,
    file: (name: string) => join(path, name),
    write,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

/** Finds the configuration of a folder with `home` and `project/sub` in it. */
export async function findIn(files: Record<string, string | object>, options: Partial<FindOptions> = {}) {
  await using dir = await folder({ 'project/sub/.keep': '', ...files })
  const places = { home: dir.file('home'), cwd: dir.file('project/sub'), env: { SVC_TRUST_CONFIG: '1' } }
  return await findConfig({ ...places, ...options, ...(options.file ? { file: dir.file(options.file) } : {}) })
}

/** The files of a plugin's package that lies in `node_modules`. */
export function packageFiles(name: string, svc: object, code: string, more: object = {}): Record<string, string | object> {
  const at = `node_modules/${name}`
  return {
    [`${at}/package.json`]: { name, version: '1.2.3', type: 'module', main: 'main.js', svc, ...more },
    [`${at}/main.js`]: code,
  }
}

export const PLAIN_PLUGIN = 'export default { requires: {}, optional: {}, setup() {} }'
