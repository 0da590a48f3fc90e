import { codeOf } from '@svc/core'
import type { ServerChoice } from '@svc/core/contracts'
import { svcHome } from '@svc/core/config'
import { reachServer, type ServerInfo } from '@svc/runtime'

/** The address of the server that was named, else of the one that runs from this home; none where a host of its own is to do it. Throws SERVER_AMBIGUOUS. */
export async function serverUrl({ url, port, local, config }: ServerChoice): Promise<string | undefined> {
  if (url !== undefined) return url
  return local || config !== undefined ? undefined : await runningUrl(port)
}

/** A tool server alone can be asked for none of it. */
export const hasApi = ({ surface }: Pick<ServerInfo, 'surface'>): boolean => surface === undefined

async function runningUrl(port: number | undefined): Promise<string | undefined> {
  try {
    using server = await reachServer(svcHome(), { port, fits: hasApi })
    return server.info.url === '' ? undefined : server.info.url
  } catch (error) {
    if (codeOf(error) !== 'SERVER_NONE') throw error
    // a server of another home or machine may listen there all the same
    return port === undefined ? undefined : `http://127.0.0.1:${port}`
  }
}

/** What `svc tokens create` gives out begins so. */
const TOKEN = /^svc_/

/** The header that carries what `SVC_API_KEY` holds: an API key, or a token of `svc tokens create`. */
export function credentialHeaders(key: string | undefined): Record<string, string> {
  if (!key) return {}
  return TOKEN.test(key) ? { authorization: `Bearer ${key}` } : { 'x-api-key': key }
}
