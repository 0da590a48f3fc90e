import { contractMismatch, missingService, type SvcError, serviceCycle, serviceTaken } from './errors.ts'
import type { Plugin, Tokens } from './plugin.ts'
import type { AnyService } from './token.ts'

/** A plugin that is to be ordered. */
export interface Orderable {
  readonly name: string
  readonly plugin: Plugin
}
export interface Order<T> {
  readonly order: T[]
  readonly problems: SvcError[]
}

/** Sorts plugins so that each comes after the services it uses, in the order of the list otherwise; pure. */
export function orderPlugins<T extends Orderable>(plugins: readonly T[], given: readonly AnyService[] = []): Order<T> {
  const problems: SvcError[] = []
  const kernel = new Map(given.map(token => [token.name, token]))
  const owners = ownersOf(plugins, kernel, problems)
  const needs = new Map(plugins.map(one => [one, needsOf(one, owners, kernel, problems)]))
  const order: T[] = []
  const path: T[] = []
  const visit = (one: T) => {
    if (order.includes(one)) return
    const at = path.indexOf(one)
    if (at >= 0) return void problems.push(serviceCycle([...path.slice(at), one].map(p => p.name)))
    path.push(one)
    for (const need of needs.get(one) ?? []) visit(need)
    path.pop()
    if (!order.includes(one)) order.push(one)
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
  for (const one of plugins) {
    const service = one.plugin.provides?.name
    if (service === undefined) continue
    const other = kernel.has(service) ? 'svc' : owners.get(service)?.name
    if (other) problems.push(serviceTaken(one.name, service, other))
    else owners.set(service, one)
  }
  return owners
}

const services = (tokens: Tokens) => Object.values(tokens).filter((token): token is AnyService => token.what === 'service')

function needsOf<T extends Orderable>(
  one: T,
  owners: Map<string, T>,
  kernel: Map<string, AnyService>,
  problems: SvcError[]
): T[] {
  const required = services(one.plugin.requires)
  for (const token of [...required, ...services(one.plugin.optional)]) {
    const theirs = owners.get(token.name)?.plugin.provides ?? kernel.get(token.name)
    const difference = theirs && differenceOf(token, theirs)
    if (difference) problems.push(contractMismatch(one.name, token.name, difference))
  }
  const missing = required.filter(token => !owners.has(token.name) && !kernel.has(token.name))
  problems.push(...missing.map(token => missingService(one.name, token.name, owners.keys())))
  return [...required, ...services(one.plugin.optional)].flatMap(token => owners.get(token.name) ?? [])
}

/** Tokens are known by name and api: what differs under one name, in words. */
export function differenceOf(
  mine: Pick<AnyService, 'api' | 'methods'>,
  theirs: Pick<AnyService, 'api' | 'methods'>
): string | undefined {
  if (mine.api !== theirs.api) return `api ${mine.api} against ${theirs.api}`
  if (mine.methods === theirs.methods) return undefined
  const words = (table: AnyService['methods']) =>
    Object.entries(table)
      .map(([name, kind]) => `${name}: ${kind}`)
      .sort()
      .join(', ')
  return words(mine.methods) === words(theirs.methods) ? undefined : `{${words(mine.methods)}} against {${words(theirs.methods)}}`
}
