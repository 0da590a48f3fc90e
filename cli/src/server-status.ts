import { isIP } from 'node:net'
import { codeOf, svcHome, systemContext, type PluginReport } from '@svc/core'
import { reachServer, type ServerInfo } from '@svc/runtime'
import { urlInvalid } from './errors.ts'
import { type Summary, summaryOf } from './metrics-summary.ts'
import { answers, type ServerMetrics, readServerMetrics } from './server-metrics.ts'
import { hasApi } from './which-server.ts'

/** Which server is asked. */
export interface Asked {
  readonly url?: string | undefined
  readonly port?: number | undefined
}

/** Everything that is known of a running server. */
export interface ServerStatus extends ServerMetrics {
  readonly url: string
  /** What its supervisor tells; absent for a server of another home or machine. */
  readonly info: ServerInfo | undefined
  readonly plugins: readonly PluginReport[]
  readonly summary: Summary | undefined
}

const ASK_MS = 10_000
const NOTHING: ServerMetrics = { health: undefined, status: undefined, metrics: undefined, untold: [] }

/** Asks the server that was named, else the one of this home. Throws SERVER_NONE, SERVER_AMBIGUOUS, SERVER_UNREACHABLE, URL_INVALID. */
export async function readStatus({ url, port }: Asked): Promise<ServerStatus> {
  if (url !== undefined) return ofUrl(url)
  try {
    return await ofHome(port)
  } catch (error) {
    // a server of another home or machine may listen there all the same
    if (codeOf(error) !== 'SERVER_NONE' || port === undefined) throw error
    return ofUrl(`http://127.0.0.1:${port}`)
  }
}

/** Whether a server's process answers, at whatever port and with TLS or without. Throws as `readStatus` does. */
export async function isLive({ url, port }: Asked): Promise<boolean> {
  if (url !== undefined) return answers({ url: checkedUrl(url), trusted: false })
  using server = await reachServer(svcHome(), { port, fits: hasApi })
  return await answers({ url: server.info.url, trusted: isHere(server.info.url) })
}

function checkedUrl(url: string): string {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw urlInvalid(url)
  return url
}

async function ofUrl(url: string): Promise<ServerStatus> {
  return statusOf(url, undefined, [], await readServerMetrics({ url: checkedUrl(url), trusted: false }))
}

async function ofHome(port: number | undefined): Promise<ServerStatus> {
  using server = await reachServer(svcHome(), { port, fits: hasApi })
  const { info, control } = server
  const { plugins } = await control.report(systemContext(AbortSignal.timeout(ASK_MS)))
  const metrics = info.url === '' ? NOTHING : await readServerMetrics({ url: info.url, trusted: isHere(info.url) })
  return statusOf(info.url, info, plugins, metrics)
}

/** An address that a process of this home has bound is this machine's; a name may lead elsewhere by now. */
function isHere(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0
}

const statusOf = (
  url: string,
  info: ServerInfo | undefined,
  plugins: readonly PluginReport[],
  metrics: ServerMetrics
): ServerStatus => ({ url, info, plugins, ...metrics, summary: metrics.metrics ? summaryOf(metrics.metrics) : undefined })

/** Whether nothing is wrong that somebody must look after. */
export const isGood = ({ url, health, status }: ServerStatus): boolean =>
  url === '' || (health !== undefined && health.status !== 'unhealthy' && status !== undefined)

export const versionOf = ({ info, health }: ServerStatus): string => health?.version ?? info?.version ?? ''

export const uptimeOf = ({ info, health }: ServerStatus): number =>
  health?.uptime_seconds ?? (info ? (Date.now() - info.startedAt) / 1000 : 0)
