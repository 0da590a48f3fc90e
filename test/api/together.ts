import { basename, dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Exchange } from './exchange.ts'

type Setting = Pick<Exchange, 'config' | 'args' | 'env' | 'files'>

/** What one service needs to be what each of these samples asks for; throws where two of them ask for different values of one key. */
export function allOf(samples: readonly Setting[]): Setting {
  const all = (of: (one: Setting) => Tree | undefined) => samples.reduce<Tree>((tree, one) => merged(tree, of(one) ?? {}), {})
  return {
    config: all(one => one.config),
    args: [...new Set(samples.flatMap(one => one.args ?? []))],
    env: all(one => one.env) as NonNullable<Setting['env']>,
    files: all(one => one.files) as NonNullable<Setting['files']>,
  }
}

interface Tree {
  readonly [key: string]: unknown
}
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

function merged(one: Tree, other: Tree): Tree {
  const keys = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...keys].map(key => [key, both(key, one[key], other[key])]))
}

function both(key: string, one: unknown, other: unknown): unknown {
  if (one === undefined || isDeepStrictEqual(one, other)) return other
  if (other === undefined) return one
  if (isTree(one) && isTree(other)) return merged(one, other)
  if (key === 'plugins') return pluginsOf(one as unknown[], other as unknown[])
  throw new Error(`one sample wants ${key} to be ${JSON.stringify(one)}, another ${JSON.stringify(other)}`)
}

/** The same file is loaded once; several are called `plugin.ts`, so that they have their names from their folders. */
const pluginsOf = (one: readonly unknown[], other: readonly unknown[]) =>
  [...one, ...other].map(named).filter((plugin, at, all) => all.findIndex(had => isDeepStrictEqual(had, plugin)) === at)

const named = (plugin: unknown) =>
  typeof plugin === 'string' && basename(plugin) === 'plugin.ts' ? { name: basename(dirname(plugin)), use: plugin } : plugin
