import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configOf, definePlugin, planHost, StartFailed } from '@svc/core'
import type { LockedPlugin } from '@svc/plugin-set'
import { interruption } from '../interrupt.ts'
import { describeInSandbox } from '../isolate-with.ts'
import { findSettings, type Place } from '../settings.ts'
import { notBuilt } from './errors.ts'
import { entryOf } from './installed.ts'

interface Around {
  readonly place: Place
  readonly config?: string | undefined
  readonly signal: AbortSignal
  readonly tell: (progress: { readonly step: 'describe'; readonly plugin: string }) => void
}

/** Runs each plugin once, held to what it may have, to learn what it declares. Throws what importing it throws, and why it cannot be held here. */
export async function describeAll(
  plugins: readonly { readonly locked: LockedPlugin; readonly folder: string }[],
  { place, config, signal, tell }: Around
): Promise<LockedPlugin[]> {
  if (plugins.length === 0) return []
  const { value } = await findSettings(config === undefined ? {} : { config }, place)
  const described: LockedPlugin[] = []
  for (const { locked, folder } of plugins) {
    signal.throwIfAborted()
    tell({ step: 'describe', plugin: locked.name })
    described.push({ ...locked, ...(await Promise.race([describe(locked, folder, value), interruption(signal)])) })
  }
  signal.throwIfAborted()
  return described
}

/** By a plan of this plugin alone, whose module is not imported but run behind the wall. */
async function describe(
  locked: LockedPlugin,
  folder: string,
  settings: Parameters<typeof describeInSandbox>[1]
): Promise<{ readonly declares?: unknown }> {
  let declares: unknown
  const { problems } = await planHost({
    config: configOf({ plugins: [entryOf(locked, folder)] }),
    async isolate({ name, module, folder: own }) {
      const file = fileURLToPath(module)
      if (!existsSync(file)) throw notBuilt(name, relative(own, file))
      const held = { folder: own, permissions: locked.permissions }
      declares = await describeInSandbox({ name, module, held }, settings)
      return definePlugin({ setup() {} })
    },
  })
  if (problems.length > 0) throw new StartFailed(problems)
  return declares === undefined ? {} : { declares }
}
