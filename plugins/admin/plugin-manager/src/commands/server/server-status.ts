import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { credentialHeaders, hasApi, serverUnreachable, urlInvalid } from '@svc/cli/program'
import { codeOf, type PluginReport, svcHome, systemContext } from '@svc/core'
import { reachServer, type ServerInfo } from '@svc/runtime'
import { type Metrics, parseMetrics, type Summary, summaryOf } from './metrics.ts'

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

/** Something that the server did not tell, and why. */
interface Untold {
  readonly path: string
  readonly status: number
  readonly code: string
  readonly message: string
}

interface ProviderState {
  readonly healthy: boolean
  readonly requests?: number
  readonly error?: string
}

/** The records of the API, as far as they are shown. */
interface HealthAnswer {
  readonly status: string
  readonly version: string
  readonly uptime_seconds: number
  readonly checks: Readonly<Record<string, string>>
  readonly plugins?: Readonly<Record<string, string>>
}
interface StatusAnswer {
  readonly uptime_seconds: number
  readonly requests_total: number
  readonly requests_active: number
  readonly providers: Readonly<Record<string, ProviderState>>
  readonly cache: { readonly enabled: boolean; readonly size: number; readonly hit_rate: number }
  /** Those that are not healthy, told to whoever has the scope admin. */
  readonly checks?: Readonly<Record<string, { readonly status: string; readonly reason?: string }>>
}

/** What a server tells over HTTP. */
export interface ServerMetrics {
  readonly health: HealthAnswer | undefined
  readonly status: StatusAnswer | undefined
  readonly metrics: Metrics | undefined
  readonly untold: readonly Untold[]
}

export interface Reached {
  readonly url: string
  /** Its certificate need not be vouched for: a process of this very home has said that it listens there. */
  readonly trusted: boolean
}

const ANSWER_MS = 10_000

/** Asks the server at `url`; `SVC_API_KEY` (an API key or a token) goes along where it is set. Throws SERVER_UNREACHABLE. */
export async function readServerMetrics(
  server: Reached,
  key: string | undefined = process.env.SVC_API_KEY
): Promise<ServerMetrics> {
  // one after the other: what this asks is part of what is under way
  const status = await get(server, '/api/v1/status', key)
  const [health, metrics] = await Promise.all([get(server, '/health', key), get(server, '/metrics', key)])
  // 503 is an unhealthy server's answer to the question how it is
  const healthAnswer = recordOf<HealthAnswer>(health, 'checks')
  const statusAnswer = withoutThis(recordOf<StatusAnswer>(status, 'requests_total'))
  const hasMetrics = metrics.status === 200
  return {
    health: healthAnswer,
    status: statusAnswer,
    metrics: hasMetrics ? parseMetrics(metrics.text) : undefined,
    untold: [
      ...(healthAnswer ? [] : [untold(health)]),
      ...(statusAnswer ? [] : [untold(status)]),
      ...(hasMetrics ? [] : [untold(metrics)]),
    ],
  }
}

/** Whether a process answers there. Throws SERVER_UNREACHABLE. */
const answers = async (server: Reached): Promise<boolean> => (await get(server, '/health/live', undefined)).status === 200

/** The request that asked is under way as well. */
const withoutThis = (told: StatusAnswer | undefined) =>
  told && { ...told, requests_active: Math.max(0, told.requests_active - 1) }

interface Answer {
  readonly path: string
  readonly status: number
  readonly text: string
}

async function get({ url, trusted }: Reached, path: string, key: string | undefined): Promise<Answer> {
  const address = new URL(path, url)
  // an `import` of node:http reads all its names, WebSocket among them, and so loads undici: a tenth of a command
  const { request } = process.getBuiltinModule(address.protocol === 'https:' ? 'node:https' : 'node:http')
  try {
    const asked = request(address, {
      headers: credentialHeaders(key),
      signal: AbortSignal.timeout(ANSWER_MS),
      agent: false,
      rejectUnauthorized: !trusted,
    })
    asked.end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return { path, status: response.statusCode ?? 0, text: await text(response) }
  } catch (error) {
    throw serverUnreachable(url, error)
  }
}

/** What answered may be no service at all: a record has its field. */
function recordOf<T extends object>({ text: body }: Answer, field: keyof T & string): T | undefined {
  const record = jsonOf(body)
  return typeof record[field] === 'object' || typeof record[field] === 'number' ? (record as T) : undefined
}

function untold({ path, status, text: body }: Answer): Untold {
  const { error_code: code, error } = jsonOf(body)
  return {
    path,
    status,
    code: typeof code === 'string' ? code : `HTTP_${status}`,
    message: typeof error === 'string' ? error : `the server answered ${status}`,
  }
}

function jsonOf(body: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(body))
  } catch {
    return {}
  }
}
