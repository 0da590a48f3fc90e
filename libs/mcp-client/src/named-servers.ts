import { type AddressGuard, createNamedServer, type NamedServer } from '@svc/guarded-fetch'
import type { HttpOptions } from './options.ts'

/** The servers that the operator has named for one connection: known as long as its client is, so that a name cannot lead elsewhere later. */
export interface NamedServers {
  readonly itself: NamedServer
  /** Where logins and tokens come from: asked because the operator named it, whoever else does. */
  readonly logins: readonly AddressGuard[]
}

export function namedServers({ url, oauth }: HttpOptions): NamedServers {
  const logins = [oauth?.tokenUrl, oauth?.issuer].filter(one => one !== undefined)
  return { itself: createNamedServer(url), logins: logins.map(one => createNamedServer(one).guard) }
}
