import { systemContext, type CallContext } from '@svc/core'
import { type CommandContext, Secrets, Store } from '@svc/core/contracts'
import { storeForgets } from '../errors.ts'

/** The secrets of the configured store, in this process. A running server shares the store. */
export interface OpenSecrets {
  readonly secrets: Secrets
  readonly ctx: CallContext
}

/**
 * Starts the plugins that the secrets need, and no others: these could require a secret that is not set yet. Throws STORE_FORGETS.
 */
export async function openSecrets(command: Pick<CommandContext, 'host' | 'signal'>, name: string): Promise<OpenSecrets> {
  const host = await command.host({ only: [Secrets.name, Store.name] })
  const ctx = systemContext(command.signal, `svc secrets ${name}`)
  const { durable, kind } = await host.service(Store).probe(ctx)
  if (!durable) throw storeForgets(kind)
  return { secrets: host.service(Secrets), ctx }
}
