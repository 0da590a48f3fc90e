import { basename, dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Exchange } from './exchange.ts'

type Setting = Pick<Exchange, 'config' | 'args' | 'env' | 'files'>

/** What one service needs to be what each of these samples asks for; throws where two of them ask for different values of one key. */
export function allOf(samples: readonly Setting[]): Setting {
  const all = (of: (setting: Setting) => Tree | undefined) =>
    samples.reduce<Tree>((tree, sample) => merged(tree, of(sample) ?? {}), {})
  return {
    config: all(item => item.config),
    args: [...new Set(samples.flatMap(sample => sample.args ?? []))],
    env: all(item => item.env) as NonNullable<Setting['env']>,
    files: all(item => item.files) as NonNullable<Setting['files']>,
  }
}

interface Tree {
  readonly [key: string]: unknown
}
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

function merged(tree: Tree, other: Tree): Tree {
  const keys = new Set([...Object.keys(tree), ...Object.keys(other)])
  return Object.fromEntries([...keys].map(key => [key, both(key, tree[key], other[key])]))
}

function both(key: string, value: unknown, other: unknown): unknown {
  if (value === undefined || isDeepStrictEqual(value, other)) return other
  if (other === undefined) return value
  if (isTree(value) && isTree(other)) return merged(value, other)
  if (key === 'plugins') return pluginsOf(value as unknown[], other as unknown[])
  throw new Error(`one sample wants ${key} to be ${JSON.stringify(value)}, another ${JSON.stringify(other)}`)
}

/** The same file is loaded once; several are called `plugin.ts`, so that they have their names from their folders. */
const pluginsOf = (item: readonly unknown[], other: readonly unknown[]) =>
  [...item, ...other].map(named).filter((plugin, at, all) => all.findIndex(had => isDeepStrictEqual(had, plugin)) === at)

const named = (plugin: unknown) =>
  typeof plugin === 'string' && basename(plugin) === 'plugin.ts' ? { name: basename(dirname(plugin)), use: plugin } : plugin
