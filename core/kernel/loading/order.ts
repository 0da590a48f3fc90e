import { contractMismatch, missingService, serviceCycle, serviceTaken, type SvcError } from '../src/errors.ts'
import type { Plugin, Tokens } from '../src/plugin.ts'
import type { AnyService } from '../src/token.ts'

/** A plugin to sort. */
interface Orderable {
  readonly name: string
  readonly plugin: Plugin
}

export interface Order<T> {
  readonly order: T[]
  readonly problems: SvcError[]
}

/** Sorts plugins so that each comes after the services it uses, otherwise in the order of the list. */
export function orderPlugins<T extends Orderable>(
  plugins: readonly T[],
  given: readonly AnyService[],
  after: ReadonlyMap<string, string>
): Order<T> {
  const problems: SvcError[] = []
  const kernel = new Map(given.map(token => [token.name, token]))
  const owners = ownersOf(plugins, kernel, problems)
  const needs = new Map(plugins.map(plugin => [plugin, needsOf(plugin, owners, kernel, problems)]))
  const order: T[] = []
  const path: T[] = []
  const visit = (value: T) => {
    if (order.includes(value)) return
    const at = path.indexOf(value)
    if (at >= 0) return void problems.push(serviceCycle([...path.slice(at), value].map(p => p.name)))
    path.push(value)
    const first = plugins.find(plugin => plugin.name === after.get(value.name))
    for (const need of [...(needs.get(value) ?? []), ...(first ? [first] : [])]) visit(need)
    path.pop()
    if (!order.includes(value)) order.push(value)
  }
  plugins.forEach(visit)
  return { order, problems }
}

function ownersOf<T extends Orderable>(
  plugins: readonly T[],
  kernel: ReadonlyMap<string, AnyService>,
  problems: SvcError[]
): Map<string, T> {
  const owners = new Map<string, T>()
  const own = (plugin: T, service: string) => {
    const other = kernel.has(service) ? 'svc' : owners.get(service)?.name
    if (other) problems.push(serviceTaken(plugin.name, service, other))
    else owners.set(service, plugin)
  }
  for (const plugin of plugins) if (plugin.plugin.provides) own(plugin, plugin.plugin.provides.name)
  const given = new Set(owners.keys())
  for (const plugin of plugins) for (const { name } of plugin.plugin.alsoProvides ?? []) if (!given.has(name)) own(plugin, name)
  return owners
}

/** The services among these tokens. */
export const servicesOf = (tokens: Tokens) =>
  Object.values(tokens).filter((token): token is AnyService => token.what === 'service')

function needsOf<T extends Orderable>(
  value: T,
  owners: Map<string, T>,
  kernel: Map<string, AnyService>,
  problems: SvcError[]
): T[] {
  const required = servicesOf(value.plugin.requires)
  for (const token of [...required, ...servicesOf(value.plugin.optional)]) {
    const theirs = providedBy(owners.get(token.name), token.name) ?? kernel.get(token.name)
    const difference = theirs && differenceOf(token, theirs)
    if (difference) problems.push(contractMismatch(value.name, token.name, difference))
  }
  const missing = required.filter(token => !owners.has(token.name) && !kernel.has(token.name))
  problems.push(...missing.map(token => missingService(value.name, token.name, owners.keys())))
  return [...required, ...servicesOf(value.plugin.optional)].flatMap(token => owners.get(token.name) ?? [])
}

const providedBy = (owner: Orderable | undefined, name: string): AnyService | undefined =>
  owner &&
  [...(owner.plugin.provides ? [owner.plugin.provides] : []), ...(owner.plugin.alsoProvides ?? [])].find(
    token => token.name === name
  )

/** Describes how two tokens of one name differ. Tokens match by name and API version. */
export function differenceOf(
  mine: Pick<AnyService, 'api' | 'methods'>,
  theirs: Pick<AnyService, 'api' | 'methods'>
): string | undefined {
  if (mine.api !== theirs.api) return `api ${mine.api} instead of ${theirs.api}`
  if (mine.methods === theirs.methods) return undefined
  const words = (table: AnyService['methods']) =>
    Object.entries(table)
      .map(([name, kind]) => `${name}: ${kind}`)
      .sort()
      .join(', ')
  return words(mine.methods) === words(theirs.methods)
    ? undefined
    : `{${words(mine.methods)}} instead of {${words(theirs.methods)}}`
}
