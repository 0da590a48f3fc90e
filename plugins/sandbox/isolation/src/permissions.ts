import { resolve } from 'node:path'
import { get } from '@svc/core'
import type { IsolationRequest } from '@svc/core/contracts'

/** What a plugin may have, with values of its configuration in the place of what stands for them. */
export interface Allowed {
  readonly env: readonly string[]
  readonly network: readonly string[]
  readonly read: readonly string[]
  readonly write: readonly string[]
}

/** Paths are absolute afterwards: those that are not begin at the folder in which svc was started. */
export function allowedOf({ permissions, config }: IsolationRequest): Allowed {
  const { env = [], network = [], read = [], write = [] } = permissions
  const words = (all: readonly string[]) => all.flatMap(one => filled(one, config))
  const paths = (all: readonly string[]) => words(all).map(path => resolve(path))
  return { env: words(env), network: words(network).map(hostOf), read: paths(read), write: paths(write) }
}

/** `<tools.notes.folder>` and `<providers[].api_key_env>`: what the plugin's own part of the configuration says there; of others' parts it gets nothing. */
function filled(word: string, config: IsolationRequest['config']): readonly string[] {
  const [, path] = /^<(.+)>$/.exec(word) ?? []
  if (path === undefined) return [word]
  const own = path.replace(/^[^[\]]*\[\]\./, '')
  const isOwn = own !== path || path.startsWith(`${config?.section}.`)
  const rest = own === path ? path.slice((config?.section.length ?? 0) + 1) : own
  return isOwn
    ? ([get(config?.value, rest.split('.'))].flat().filter(value => typeof value === 'string' && value !== '') as string[])
    : []
}

/** A configured URL names its host. */
const hostOf = (word: string) => (/^https?:\/\//.test(word) ? (URL.parse(word)?.host ?? word) : word)
