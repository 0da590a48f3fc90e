import { type CallContext, systemContext } from '@svc/core'
import type { CommandContext } from '@svc/core/contracts'
import { findServers, fromWire } from '@svc/runtime'
import { notReloaded } from '../errors.ts'

/** Lists the places in the configuration that refer to secrets, by name. The values stay raw: nothing is resolved. */
export function referencePlaces(value: unknown, path = ''): [name: string, path: string][] {
  if (typeof value === 'string')
    return [...value.matchAll(/(?<!\$)\$\{secret:([A-Za-z][A-Za-z0-9_-]*)\}/g)].map(([, name = '']) => [name, path])
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => referencePlaces(item, path === '' ? key : `${path}.${key}`))
}

/** Reloads the servers of this home if their configuration refers to the secret: they read it only when they start. */
export async function reloadUsers({ home, setting, note, signal }: CommandContext, name: string): Promise<void> {
  const places = referencePlaces(await setting()).filter(([item]) => item === name)
  if (places.length === 0) return
  using stack = new DisposableStack()
  const servers = (await findServers(home)).map(server => stack.use(server))
  const ctx: CallContext = systemContext(signal, 'svc secrets')
  for (const { control, info } of servers) {
    const { problems } = await control.reload(ctx)
    if (problems.length > 0) throw notReloaded(info.url, problems.map(fromWire))
    note(`${info.url} was reloaded, because ${places.map(([, path]) => path).join(', ')} refers to the secret`)
  }
}
