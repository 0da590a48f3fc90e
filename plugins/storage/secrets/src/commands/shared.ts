import { systemContext, type CallContext } from '@svc/core'
import { type CommandContext, Secrets, Store, type SecretInfo } from '@svc/core/contracts'
import { sharedStore } from '@svc/plugin-kit'
import { reloadServers } from '@svc/runtime'
import { notReloaded } from '../errors.ts'

/** The secrets of the configured store, in this process. A running server shares the store. */
export interface OpenSecrets {
  readonly secrets: Secrets
  readonly ctx: CallContext
}

/**
 * Starts the plugins that the secrets need, and no others: these could require a secret that is not set yet. Throws STORE_NOT_SHARED.
 */
export async function openSecrets(command: Pick<CommandContext, 'host' | 'signal'>, name: string): Promise<OpenSecrets> {
  const host = await command.host({ only: [Secrets.name, Store.name] })
  const ctx = systemContext(command.signal, `svc secrets ${name}`)
  await sharedStore(host, 'no server would read the secret', ctx)
  return { secrets: host.service(Secrets), ctx }
}

/** A secret as JSON. */
export const infoRecord = ({ name, source, state, createdAt, changedAt, keyId }: SecretInfo) => ({
  name,
  source,
  state,
  created_at: timeOf(createdAt),
  changed_at: timeOf(changedAt),
  key_id: keyId ?? null,
})

const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

export async function printStored(command: CommandContext, info: SecretInfo, json: boolean): Promise<void> {
  if (json) command.print(JSON.stringify(infoRecord(info)))
  else command.print(`stored ${info.name}, sealed with the key ${info.keyId}`)
  await reloadUsers(command, info.name)
}

/** Lists the places in the configuration that refer to secrets, by name. The values stay raw: nothing is resolved. */
export function referencePlaces(value: unknown, path = ''): [name: string, path: string][] {
  if (typeof value === 'string')
    return [...value.matchAll(/(?<!\$)\$\{secret:([A-Za-z][A-Za-z0-9_-]*)\}/g)].map(([, name = '']) => [name, path])
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => referencePlaces(item, path === '' ? key : `${path}.${key}`))
}

/** Reloads the servers of this home if their configuration refers to the secret: they read it only when they start. */
async function reloadUsers({ home, setting, note, signal }: CommandContext, name: string): Promise<void> {
  const places = referencePlaces(await setting()).filter(([item]) => item === name)
  if (places.length === 0) return
  for await (const { url, problems } of reloadServers(home, systemContext(signal, 'svc secrets'))) {
    if (problems.length > 0) throw notReloaded(url, problems)
    note(`${url} was reloaded, because ${places.map(([, path]) => path).join(', ')} refers to the secret`)
  }
}
