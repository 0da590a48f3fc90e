import { type AddressGuard, createNamedServer, type NamedServer } from '@svc/safe-fetch'
import type { HttpOptions } from './options.ts'

/** The servers that the operator names for one connection. They live as long as the client, so that a name cannot lead elsewhere later. */
export interface NamedServers {
  readonly itself: NamedServer
  /** Where logins and tokens come from. The operator named these servers, so they may be private. */
  readonly logins: readonly AddressGuard[]
}

export function namedServers({ url, oauth }: HttpOptions): NamedServers {
  const logins = [oauth?.tokenUrl, oauth?.issuer].filter(one => one !== undefined)
  return { itself: createNamedServer(url), logins: logins.map(one => createNamedServer(one).guard) }
}
