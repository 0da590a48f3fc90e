import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { createCredentials, type Credentials, hasApi, serverUnreachable, urlInvalid } from '@svc/cli/program'
import { codeOf, type PluginReport, svcHome, systemContext } from '@svc/core'
import { type Control, reachServer, type ServerInfo } from '@svc/runtime'
import { type Metrics, parseMetrics, type Summary, summaryOf } from './metrics.ts'

/** The server to ask, and the headers to send. */
export interface ServerAddress {
  readonly url?: string | undefined
  readonly port?: number | undefined
  readonly header?: readonly string[] | undefined
}

/** The whole status of a running server. */
export interface ServerStatus extends MetricsOfServer {
  readonly url: string
  /** The report of its supervisor; absent for a server of another home or machine. */
  readonly info: ServerInfo | undefined
  readonly plugins: readonly PluginReport[]
  readonly summary: Summary | undefined
}

const ASK_MS = 10_000
const NOTHING: MetricsOfServer = { health: undefined, status: undefined, metrics: undefined, unavailable: [] }

/** Asks the named server, or the one of this home. Throws SERVER_NONE, SERVER_AMBIGUOUS, SERVER_UNREACHABLE, URL_INVALID. */
export async function readStatus({ url, port, header }: ServerAddress): Promise<ServerStatus> {
  if (url !== undefined) return ofUrl(url, header)
  try {
    return await ofHome(port, header)
  } catch (error) {
    // a server of another home or machine can listen there
    if (codeOf(error) !== 'SERVER_NONE' || port === undefined) throw error
    return ofUrl(`http://127.0.0.1:${port}`, header)
  }
}

/** Whether the process of a server answers, on any port, with or without TLS. Throws as `readStatus` does. */
export async function isLive({ url, port }: ServerAddress): Promise<boolean> {
  if (url !== undefined) return answers({ url: checkedUrl(url), trusted: false })
  using server = await reachServer(svcHome(), { port, fits: hasApi })
  return await answers({ url: server.info.url, trusted: isHere(server.info.url) })
}

export function checkedUrl(url: string): string {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw urlInvalid(url)
  return url
}

/** Sends one GET request to the named server, or to the one of this home. Throws as `readStatus` does. */
export async function askServer({ url, port, header }: ServerAddress, path: string): Promise<Answer> {
  if (url !== undefined) return overHttp({ url: checkedUrl(url), trusted: false }, header)(path)
  try {
    using server = await reachServer(svcHome(), { port, fits: hasApi })
    return await askHere(server, header)(path)
  } catch (error) {
    if (codeOf(error) !== 'SERVER_NONE' || port === undefined) throw error
    return overHttp({ url: `http://127.0.0.1:${port}`, trusted: false }, header)(path)
  }
}

async function ofUrl(url: string, header: ServerAddress['header']): Promise<ServerStatus> {
  return statusOf(url, undefined, [], await readServerMetrics(overHttp({ url: checkedUrl(url), trusted: false }, header)))
}

async function ofHome(port: number | undefined, header: ServerAddress['header']): Promise<ServerStatus> {
  using server = await reachServer(svcHome(), { port, fits: hasApi })
  const { info, control } = server
  const { plugins } = await control.report(systemContext(AbortSignal.timeout(ASK_MS)))
  if (info.url === '') return statusOf(info.url, info, plugins, NOTHING)
  return statusOf(info.url, info, plugins, await readServerMetrics(askHere(server, header)))
}

/** Asks a server of this home. A header is for HTTP. */
const askHere = ({ info: { url }, control }: ReachedServer, header: ServerAddress['header']): Ask =>
  header?.length ? overHttp({ url, trusted: isHere(url) }, header) : overControl(control, url)

type ReachedServer = Pick<Awaited<ReturnType<typeof reachServer>>, 'info' | 'control'>

/** Sends a GET request to a server. */
type Ask = (path: string) => Promise<Answer>

/** Over HTTP with the credentials of the command. Throws HEADER_INVALID, SERVER_UNREACHABLE. */
function overHttp(server: Reached, header: ServerAddress['header']): Ask {
  const credentials = createCredentials(server.url, { header })
  return path => getWith(credentials, server, path)
}

/** Over the control socket as the operator of this machine: without a credential, and without the limits of clients. */
function overControl(control: Control, url: string): Ask {
  return async path => {
    let [status, body] = [0, '']
    try {
      for await (const part of control.request({ method: 'GET', path }, systemContext(AbortSignal.timeout(ANSWER_MS))))
        if (typeof part === 'string') body += part
        else status = part.status
      return { path, status, text: body }
    } catch (error) {
      throw serverUnreachable(url, error)
    }
  }
}

/** An address that a process of this home has bound is on this machine; a host name can lead elsewhere. */
function isHere(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0
}

const statusOf = (
  url: string,
  info: ServerInfo | undefined,
  plugins: readonly PluginReport[],
  metrics: MetricsOfServer
): ServerStatus => ({ url, info, plugins, ...metrics, summary: metrics.metrics ? summaryOf(metrics.metrics) : undefined })

/** Whether the server is healthy and publishes its status. */
export const isGood = ({ url, health, status }: ServerStatus): boolean =>
  url === '' || (health !== undefined && health.status !== 'unhealthy' && status !== undefined)

export const versionOf = ({ info, health }: ServerStatus): string => health?.version ?? info?.version ?? ''

export const uptimeOf = ({ info, health }: ServerStatus): number =>
  health?.uptime_seconds ?? (info ? (Date.now() - info.startedAt) / 1000 : 0)

/** A part of the status that the server did not return, with the reason. */
interface UnavailablePart {
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

/** The shown parts of the API's records. */
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
  /** The checks that are not healthy; only for credentials with the scope admin. */
  readonly checks?: Readonly<Record<string, { readonly status: string; readonly reason?: string }>>
}

/** The status of a server over HTTP. */
interface MetricsOfServer {
  readonly health: HealthAnswer | undefined
  readonly status: StatusAnswer | undefined
  readonly metrics: Metrics | undefined
  readonly unavailable: readonly UnavailablePart[]
}

export interface Reached {
  readonly url: string
  /** Skips the check of the certificate: a process of this home has reported that it listens there. */
  readonly trusted: boolean
}

const ANSWER_MS = 10_000

/** Asks a server for its metrics. Throws SERVER_UNREACHABLE, HEADER_INVALID. */
async function readServerMetrics(ask: Ask): Promise<MetricsOfServer> {
  // not in parallel: the status counts active requests
  const status = await ask('/api/v1/status')
  const [health, metrics] = await Promise.all([ask('/health'), ask('/metrics')])
  // an unhealthy server answers 503
  const healthAnswer = recordOf<HealthAnswer>(health, 'checks')
  const statusAnswer = withoutThis(recordOf<StatusAnswer>(status, 'requests_total'))
  const hasMetrics = metrics.status === 200
  return {
    health: healthAnswer,
    status: statusAnswer,
    metrics: hasMetrics ? parseMetrics(metrics.text) : undefined,
    unavailable: [
      ...(healthAnswer ? [] : [unavailable(health)]),
      ...(statusAnswer ? [] : [unavailable(status)]),
      ...(hasMetrics ? [] : [unavailable(metrics)]),
    ],
  }
}

/** Whether a process answers there. Throws SERVER_UNREACHABLE. */
const answers = async (server: Reached): Promise<boolean> => (await get(server, '/health/live', {})).status === 200

/** Subtracts the request for the status itself. */
const withoutThis = (record: StatusAnswer | undefined) =>
  record && { ...record, requests_active: Math.max(0, record.requests_active - 1) }

/** An answer over HTTP. */
export interface Answer {
  readonly path: string
  readonly status: number
  readonly text: string
}

/** Sends a GET request. Asks again after a 401 if the credential helper can have another credential. */
export async function getWith(credentials: Credentials, server: Reached, path: string): Promise<Answer> {
  const ask = async () => get(server, path, await credentials.headers({ method: 'GET', path }))
  const answer = await ask()
  return answer.status === 401 && (await credentials.rejected()) ? ask() : answer
}

async function get({ url, trusted }: Reached, path: string, headers: Record<string, string>): Promise<Answer> {
  const address = new URL(path, url)
  // an `import` of node:http loads all its lazy exports, including undici: a tenth of the command's time
  const { request } = process.getBuiltinModule(address.protocol === 'https:' ? 'node:https' : 'node:http')
  try {
    const asked = request(address, {
      headers,
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

/** The server may not be svc, so the field is checked. */
function recordOf<T extends object>({ text: body }: Answer, field: keyof T & string): T | undefined {
  const record = jsonOf(body)
  return typeof record[field] === 'object' || typeof record[field] === 'number' ? (record as T) : undefined
}

export function unavailable({ path, status, text: body }: Answer): UnavailablePart {
  const { error_code: code, error } = jsonOf(body)
  return {
    path,
    status,
    code: typeof code === 'string' ? code : `HTTP_${status}`,
    message: typeof error === 'string' ? error : `the server answered ${status}`,
  }
}

export function jsonOf(body: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(body))
  } catch {
    return {}
  }
}
