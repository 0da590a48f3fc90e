import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, get, type RunningHost, StartFailed } from '@svc/core'
import type { Command } from '@svc/core/contracts'
import type { Contributed } from './contributed.ts'
import { commandBroken } from './errors.ts'
import { ensureHome } from '@svc/core/processes'
import { startInnerHost } from './inner-host.ts'
import { abortOnInterrupt } from './interrupt.ts'
import { REFUSALS } from './refusal-lines.ts'
import { findSettings, setHome } from './settings.ts'

/** Imports and runs a plugin's command; resolves with its exit code. `file`: the configuration that the command line names. */
export async function runContributed(found: Contributed, args: readonly string[], file?: string): Promise<number> {
  const settings = () => findSettings(file === undefined ? {} : { config: file })
  await refuseChanged(found.plugin, settings)
  const command = await commandOf(found)
  // its module was read after the files were verified
  await refuseChanged(found.plugin, settings)
  const home = ensureHome()
  await using stack = new AsyncDisposableStack()
  const { signal } = stack.use(abortOnInterrupt())
  let started: Promise<RunningHost> | undefined
  const start = async () => stack.use(await startInnerHost(await settings(), home, REFUSALS)).host
  const code = await command({
    args,
    signal,
    home,
    print: line => void process.stdout.write(`${line}\n`),
    note: line => void process.stderr.write(`${line}\n`),
    setting: async (...keys) => get((await settings()).value, keys),
    host: () => (started ??= start()),
  })
  return code ?? 0
}

/** Code that was changed since it was installed must not run, and a command's is about to. */
async function refuseChanged(plugin: string, settings: () => Promise<Config>): Promise<void> {
  if (!existsSync(join(setHome(), 'svc-plugins.lock'))) return
  const changed = (await settings()).problems.filter(
    problem => CHANGED.has(problem.code) && (problem.plugin ?? plugin) === plugin
  )
  if (changed.length > 0) throw new StartFailed(changed)
}

const CHANGED: ReadonlySet<string> = new Set(['PLUGIN_CHANGED', 'PLUGIN_FILES_MISSING', 'LOCK_INVALID'])

async function commandOf({ id, plugin, module }: Contributed): Promise<Command> {
  const name = id.replaceAll(':', ' ')
  const loaded = await import(module).catch((error: unknown) => {
    throw commandBroken(name, plugin, error)
  })
  const { default: command } = loaded as { default?: unknown }
  if (typeof command !== 'function') throw commandBroken(name, plugin, new TypeError('it exports no function as default'))
  return command as Command
}
