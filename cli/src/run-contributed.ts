import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from '@oclif/core'
import {
  type Config,
  configOf,
  type ConfigTree,
  definePlugin,
  get,
  type LogOptions,
  planHost,
  type RunningHost,
  StartFailed,
} from '@svc/core'
import type { CommandContext, CommandHostOptions } from '@svc/core/contracts'
import { ensureHome } from '@svc/runtime'
import { commandClass } from './command-manifest.ts'
import type { CommandSource } from './contributed.ts'
import { commandUnselected } from './errors.ts'
import { hostOptions } from './host-options.ts'
import { startInnerHost } from './inner-host.ts'
import { abortOnInterrupt } from './interrupt.ts'
import { readable, REFUSALS } from './log-output.ts'
import { OURS } from './plugin-places.ts'
import { createServerClient, operatorServer, serverUrl } from './server-client.ts'
import { here, setHome } from './command-place.ts'
import { findSettings } from './settings.ts'
import { MANAGER } from './summaries.ts'

/** Loads the class of a plugin's command and gives it a context. Disposal closes the host that the command started. */
export class CommandRunner implements AsyncDisposable {
  readonly #file: string | undefined
  readonly #stack = new AsyncDisposableStack()

  /** `file`: the configuration file of the command line. */
  constructor(file: string | undefined) {
    this.#file = file
  }

  async load(source: CommandSource, id: string): Promise<Command.Class> {
    if (source.selector !== undefined) throw commandUnselected(id.split(':'), source.plugin, source.selector)
    await this.#refuseChanged(source)
    const { permissions } = source
    if (permissions !== undefined) return this.#isolated(source, id)
    const found = await commandClass(source, id)
    // its module was read after the verification of its files
    await this.#refuseChanged(source)
    return Object.assign(found, { given: this.#context(source) })
  }

  /** A stand-in for a class that only the sandbox of its plugin imports. It passes the command line on. */
  #isolated(source: CommandSource, id: string): Command.Class {
    const context = this.#context(source)
    const settings = this.#settings
    return class extends Command {
      static override id = id

      async run(): Promise<number> {
        const { runInProcess } = await import('./command-process.ts')
        const { value } = await settings()
        const section = () => sectionOf(source, value)
        return runInProcess(source, value, { id, argv: this.argv, context, section })
      }
    }
  }

  #settings = (debug = false, settings: ConfigTree = {}) =>
    findSettings({ debug, ...(this.#file === undefined ? {} : { config: this.#file }) }, here(), settings)

  #context({ plugin }: CommandSource): CommandContext {
    const file = this.#file
    let signal: AbortSignal | undefined
    const interrupted = () => (signal ??= this.#stack.use(abortOnInterrupt()).signal)
    // some commands of svc create no home, and some handle Ctrl-C themselves
    if (plugin !== MANAGER) void [interrupted(), ensureHome()]
    let started: Promise<RunningHost> | undefined
    const start = async ({ debug, log, settings, only, surfaces }: CommandHostOptions) => {
      interrupted()
      const config = await this.#settings(debug, settings)
      const output = debug || log ? WHOLE_LOG : REFUSALS
      const which = { ...(only ? { only } : {}), ...(surfaces ? { kept: surfaces } : {}) }
      return this.#stack.use(await startInnerHost(config, ensureHome(), output, which)).host
    }
    return {
      get signal() {
        return interrupted()
      },
      get home() {
        return ensureHome()
      },
      cwd: process.cwd(),
      print: line => void process.stdout.write(`${line}\n`),
      note: line => void process.stderr.write(`${line}\n`),
      setting: async (...keys) => get((await this.#settings()).value, keys),
      host: (options = {}) => (started ??= start(options)),
      async server(choice = {}) {
        if (choice.operator && choice.url === undefined && !choice.header?.length)
          return operatorServer(ensureHome(), choice.port, interrupted())
        const url = await serverUrl({ ...choice, config: choice.config ?? file })
        return url === undefined ? undefined : createServerClient(url, interrupted(), { header: choice.header })
      },
      unconfigured: async section => {
        const config = await findSettings(file === undefined ? {} : { config: file })
        return (await import('@svc/plugin-manager/installed')).unconfiguredIn(section, config, setHome())
      },
      granted: async permission => {
        const config = await this.#settings()
        const { loaded } = await planHost(hostOptions(config, ensureHome()))
        return loaded.flatMap(({ name, found }) => {
          const names = found.permissions[permission] ?? []
          return names.length === 0 ? [] : [{ plugin: name, names }]
        })
      },
    }
  }

  /** Refuses code that changed since its installation. Plugins of svc are not in the lock, and work with a broken one. */
  async #refuseChanged({ plugin, entry }: CommandSource): Promise<void> {
    if (entry.from === OURS || !existsSync(join(setHome(), 'svc-plugins.lock'))) return
    const changed = (await this.#settings()).problems.filter(
      (problem: Config['problems'][number]) => CHANGED.has(problem.code) && (problem.plugin ?? plugin) === plugin
    )
    if (changed.length > 0) throw new StartFailed(changed)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync()
  }
}

const WHOLE_LOG: LogOptions = { destination: { write: line => void process.stderr.write(readable(line, process.stderr)) } }

const CHANGED: ReadonlySet<string> = new Set(['PLUGIN_CHANGED', 'PLUGIN_FILES_MISSING', 'LOCK_INVALID'])

/**
 * The section of an isolated plugin. It is known since the installation; for a plugin by path or link, the sandbox describes
 * the module. Throws START_FAILED.
 */
async function sectionOf({ entry }: CommandSource, value: Config['value']): Promise<string | undefined> {
  let { declares } = entry
  if (declares === undefined) {
    const { describeInSandbox } = await import('./isolate-with.ts')
    const { problems } = await planHost({
      config: configOf({ plugins: [entry] }),
      async isolate({ name, module, folder, manifest }) {
        const held = { folder, permissions: entry.permissions ?? manifest.permissions ?? {} }
        declares = await describeInSandbox({ name, module, confinement: held }, value)
        return definePlugin({ setup() {} })
      },
    })
    if (problems.length > 0) throw new StartFailed(problems)
  }
  return (Object(declares) as { section?: string }).section
}
