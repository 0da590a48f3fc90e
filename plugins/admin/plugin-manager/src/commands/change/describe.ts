import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type ConfigTree,
  configOf,
  definePlugin,
  type Isolate,
  planHost,
  readManifest,
  StartFailed,
  type SvcError,
} from '@svc/core'
import { entryOfLocked } from '../../set/installed-layer.ts'
import { type LockedPlugin, mapAtOnce, notBuilt } from '../../set.ts'
import {
  interruption,
  openDescriber,
  wrongFact,
  describeInProcess,
  sourceIn,
  commandBroken,
  findSettings,
  type CommandPlace,
} from '@svc/cli/program'

interface ChangeContext {
  readonly place: CommandPlace
  readonly config?: string | undefined
  readonly signal: AbortSignal
  readonly report: (progress: {
    readonly step: 'describe'
    readonly plugin: string
    readonly at: number
    readonly of: number
  }) => void
}

/**
 * Runs each plugin once in its sandbox and reads its declarations. Throws the error of the import, and ISOLATION_UNAVAILABLE.
 */
export async function describeAll(
  plugins: readonly { readonly locked: LockedPlugin; readonly folder: string }[],
  { place, config, signal, report }: ChangeContext
): Promise<LockedPlugin[]> {
  if (plugins.length === 0) return []
  const { value } = await findSettings(config === undefined ? {} : { config }, place)
  await using describer = await openDescriber(value)
  return await mapAtOnce(
    plugins,
    async ({ locked, folder }, at) => {
      report({ step: 'describe', plugin: locked.name, at: at + 1, of: plugins.length })
      return { ...locked, ...(await Promise.race([describe(locked, folder, describer), interruption(signal)])) }
    },
    signal
  )
}

/** Describes the commands of plugins in their own processes, for help and completion. Throws COMMAND_BROKEN. */
export async function describeCommandsOf(
  plugins: readonly { readonly locked: LockedPlugin; readonly folder: string }[],
  { place, config, signal, report }: ChangeContext
): Promise<LockedPlugin[]> {
  const found = plugins.flatMap(({ locked, folder }) => {
    const source = sourceIn(folder, entryOfLocked(locked, folder))
    return source ? [{ locked, source }] : []
  })
  if (found.length === 0) return []
  const { value } = await findSettings(config === undefined ? {} : { config }, place)
  return mapAtOnce(
    found,
    async ({ locked, source }, at) => {
      report({ step: 'describe', plugin: locked.name, at: at + 1, of: found.length })
      return { ...locked, commands: await describeCommands(locked.name, source, value) }
    },
    signal
  )
}

async function describeCommands(plugin: string, source: NonNullable<ReturnType<typeof sourceIn>>, value: ConfigTree) {
  const facts = await describeInProcess(source, value).catch((error: unknown) => {
    throw commandBroken(source.ids[0]!.replaceAll(':', ' '), plugin, error)
  })
  const missing = source.ids.find(id => !Object.hasOwn(Object(facts) as object, id))
  if (missing !== undefined)
    throw commandBroken(missing.replaceAll(':', ' '), plugin, new TypeError(`COMMANDS has no class "${missing}"`))
  const broken = source.ids.find(id => wrongFact(facts[id]) !== undefined)
  if (broken === undefined) return facts
  const why = `its "${wrongFact(facts[broken])}" does not have the form that oclif's help reads`
  throw commandBroken(broken.replaceAll(':', ' '), plugin, new TypeError(why))
}

async function describe(
  locked: LockedPlugin,
  folder: string,
  describer: Awaited<ReturnType<typeof openDescriber>>
): Promise<{ readonly declares?: unknown }> {
  let declares: unknown
  const problems = await planAlone(locked, folder, async ({ name, module, folder: own }) => {
    const unbuilt = unbuiltOf({ name, module, folder: own })
    if (unbuilt) throw unbuilt
    const held = { folder: own, permissions: locked.permissions }
    declares = await describer.describe({ name, module, confinement: held })
  })
  if (problems.length > 0) throw new StartFailed(problems)
  return declares === undefined ? {} : { declares }
}

/** Throws PLUGIN_IMPORT_FAILED if the module does not exist. A start reports all other problems. */
export async function checkBuilt(locked: LockedPlugin, folder: string): Promise<void> {
  let unbuilt: SvcError | undefined
  await planAlone({ ...locked, isolation: 'process' }, folder, async info => {
    unbuilt = unbuiltOf(info)
  })
  if (unbuilt) throw unbuilt
}

type IsolatedModule = Parameters<Isolate>[0]

function unbuiltOf({ name, module, folder }: Pick<IsolatedModule, 'name' | 'module' | 'folder'>): SvcError | undefined {
  const file = fileURLToPath(module)
  return existsSync(file) ? undefined : notBuilt(name, relative(folder, file))
}

/**
 * Plans only this plugin and passes its module to `take` instead of importing it. Adds an entry for a plugin with instances,
 * because the plan ignores it otherwise.
 */
async function planAlone(
  locked: LockedPlugin,
  folder: string,
  take: (info: IsolatedModule) => Promise<void>
): Promise<readonly SvcError[]> {
  const { instances } = (await readManifest(join(folder, 'package.json'))).manifest
  const entries = instances ? nested(instances.section.split('.'), { [instances.type]: { type: instances.type } }) : {}
  const plan = await planHost({
    config: configOf({ ...entries, plugins: [entryOfLocked(locked, folder)] }),
    async isolate(info) {
      await take(info)
      return instances
        ? definePlugin({ instances: instances.section, type: instances.type, setup() {} })
        : definePlugin({ setup() {} })
    },
  })
  return plan.problems
}

const nested = (path: readonly string[], value: ConfigTree) =>
  path.reduceRight<ConfigTree>((inner, key) => ({ [key]: inner }), value)
