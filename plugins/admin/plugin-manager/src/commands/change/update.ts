import { type LockedPlugin, planChange, readLock } from '../../set.ts'
import { setHome } from '@svc/cli/program'
import { type Asked, runChange, tell } from './change.ts'
import { notInstalled } from './errors.ts'

export interface UpdateAsked extends Pick<Asked, 'isolation' | 'trust' | 'yes' | 'dryRun' | 'json' | 'config'> {
  /** None: all. */
  readonly names: readonly string[]
  readonly offline: boolean
}

/** `svc plugins update`: each is asked for again as it was installed. */
export async function updatePlugins({ names, offline, ...asked }: UpdateAsked): Promise<number> {
  const { plugins } = await readLock(setHome())
  for (const name of names) named(plugins, name)
  if (plugins.length === 0) return tell(asked, { text: 'no plugin is installed', facts: { plugins: [], removed: [] } })
  return runChange((home, options) => planChange(home, { update: names.length > 0 ? names : 'all', offline }, options), {
    ...asked,
    verb: 'update',
    done: 'updated',
    nothing: 'nothing newer than what is installed',
  })
}

/** An installed plugin. Throws PLUGIN_NOT_INSTALLED. */
export function named(plugins: readonly LockedPlugin[], name: string): LockedPlugin {
  const found = plugins.find(one => one.name === name)
  if (found) return found
  throw notInstalled(
    name,
    plugins.map(one => one.name)
  )
}
