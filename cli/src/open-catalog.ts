import type { ServerChoice } from '@svc/core/contracts'
import type { Catalog } from './catalog.ts'
import { localCatalog, startOwnHost } from './catalog-local.ts'
import { remoteCatalog } from './catalog-remote.ts'
import { createServerClient } from './server-client.ts'
import { serverUrl } from './which-server.ts'

/** What the server that was named or that runs has, else what a host of this process has. Throws START_FAILED, SERVER_AMBIGUOUS, URL_INVALID. */
export async function openCatalog(wanted: ServerChoice): Promise<Catalog & AsyncDisposable> {
  const url = await serverUrl(wanted)
  if (url !== undefined)
    return { ...remoteCatalog(createServerClient(url, new AbortController().signal)), async [Symbol.asyncDispose]() {} }
  const inner = await startOwnHost(wanted.config === undefined ? {} : { config: wanted.config })
  return { ...localCatalog(inner.host), [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose]() }
}
