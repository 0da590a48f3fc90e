import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, svcHome, systemContext } from '@svc/core'
import type {
  ErrorRecord,
  OperatorAnswerPart,
  RequestMethod,
  RequestOptions,
  ServerChoice,
  ServerClient,
} from '@svc/core/contracts'
import { readEvents } from '@svc/provider-http/sse'
import { findServers, reachServer, reachServerIfAny, type ServerInfo } from '@svc/runtime'
import { createCredentials, type Credentials, type CredentialSources } from './credentials.ts'
import { reloadedFacts, reloadedText } from './announcer.ts'
import { errorFromRecord } from './command/errors.ts'
import { answerTooLarge, serverRedirects, serverUnreachable, urlInvalid } from './errors.ts'

/** A list of models takes a server at most 5 s, a probe 2 s. */
const ANSWER_MS = 15_000
const LARGEST = 16 * 1024 * 1024

/** One exchange with a server. It follows no redirect. */
type Transport = (path: string, init: Exchange) => Promise<Response>

interface Exchange {
  readonly method: RequestMethod
  readonly headers: Record<string, string>
  readonly body?: string
  readonly signal: AbortSignal
}

/**
 * A client of the server at `url`, which sends the credentials of `createCredentials`. `ended` aborts requests without their own
 * signal. Throws URL_INVALID, HEADER_INVALID.
 */
export function createServerClient(url: string, ended: AbortSignal, sources: CredentialSources = {}): ServerClient {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw urlInvalid(url)
  const transport: Transport = (path, init) => reach(new URL(path, url).href, init, url)
  return clientOver(transport, url, ended, createCredentials(url, sources))
}

/**
 * A client of the server of this home, over its control socket, as the operator of this machine: it sends no credential. `url`
 * names the server in errors.
 */
function createOperatorClient({ home, port, url }: OperatorServer, ended: AbortSignal): ServerClient {
  const credentials: Credentials = { headers: async () => ({}), rejected: async () => false }
  return clientOver((path, init) => operate({ home, port }, path, init), url, ended, credentials)
}

interface OperatorServer {
  readonly home: string
  readonly port: number | undefined
  readonly url: string
}

async function operate(
  { home, port }: Omit<OperatorServer, 'url'>,
  path: string,
  { method, headers: { accept }, body, signal }: Exchange
): Promise<Response> {
  const server = await reachServer(home, { port, fits: hasApi })
  const request = { method, path, ...(accept === undefined ? {} : { accept }), ...(body === undefined ? {} : { body }) }
  const parts = server.control.request(request, systemContext(signal, 'svc'))[Symbol.asyncIterator]()
  const close = async () => {
    server[Symbol.dispose]()
    await parts.return?.()
  }
  try {
    const head = await parts.next()
    if (head.done || typeof head.value === 'string') throw new TypeError('the server sent no status')
    const { status, headers } = head.value
    const stream = ReadableStream.from<string>(textsOf(parts, close)).pipeThrough(new TextEncoderStream())
    if (status !== 204) return new Response(stream, { status, headers })
    await stream.cancel()
    return new Response(null, { status, headers })
  } catch (error) {
    await close()
    throw error
  }
}

async function* textsOf(parts: AsyncIterator<OperatorAnswerPart>, close: () => Promise<void>): AsyncGenerator<string, void> {
  try {
    for (;;) {
      const { done, value } = await parts.next()
      if (done) return
      if (typeof value === 'string') yield value
    }
  } finally {
    await close()
  }
}

function clientOver(transport: Transport, url: string, ended: AbortSignal, credentials: Credentials): ServerClient {
  const once = async (method: RequestMethod, path: string, { body, accept, signal, limit }: Sent) => {
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(accept === undefined ? {} : { accept }),
      ...(await credentials.headers({ method, path, ...(body === undefined ? {} : { body }) }, signal)),
    }
    return transport(path, { method, headers, signal: limit?.() ?? signal, ...(body === undefined ? {} : { body }) })
  }
  const send = async (method: RequestMethod, path: string, sent: Sent) => {
    let response = await once(method, path, sent)
    if (response.status === 401 && (await credentials.rejected(sent.signal))) {
      await response.body?.cancel()
      response = await once(method, path, sent)
    }
    const isEmpty = response.status === 204
    if (!response.ok || (response.body === null && !isEmpty)) throw await refusal(response, url)
    return response.body ?? new Blob([]).stream()
  }
  const jsonOf = (body: object | undefined) => (body === undefined ? {} : { body: JSON.stringify(body) })
  return {
    url,
    async request<T>(method: RequestMethod, path: string, { body, signal = ended }: RequestOptions = {}) {
      let late = new AbortController().signal
      const limit = () => AbortSignal.any([signal, (late = AbortSignal.timeout(ANSWER_MS))])
      try {
        const answer = await send(method, path, { signal, limit, ...jsonOf(body) })
        const text = await textOf(answer, url)
        // the server is of the same project
        return (text === '' ? undefined : JSON.parse(text)) as T
      } catch (error) {
        throw late.aborted && !signal.aborted ? serverUnreachable(url, error) : error
      }
    },
    async *stream(method, path, { body, signal = ended } = {}) {
      const events = await send(method, path, { signal, ...jsonOf(body), accept: 'text/event-stream' })
      for await (const { event, data } of readEvents(events)) yield { event, data }
    },
    async *text(method, path, { body, signal = ended } = {}) {
      const decoder = new TextDecoder()
      for await (const bytes of await send(method, path, { signal, ...jsonOf(body) }))
        yield decoder.decode(bytes as Uint8Array, { stream: true })
      yield decoder.decode()
    },
  }
}

interface Sent {
  readonly body?: string
  readonly accept?: string
  readonly signal: AbortSignal
  /** Begins the time limit of the server. The credential helper, which can ask a person, has its own. */
  readonly limit?: () => AbortSignal
}

/** Following a redirect would send the credential to another server. */
async function reach(address: string, init: RequestInit, url: string): Promise<Response> {
  const response = await fetched(address, { ...init, redirect: 'manual' }, url)
  if (response.status < 300 || response.status > 399) return response
  await response.body?.cancel()
  throw serverRedirects(url, response.status, placeOf(response, address))
}

async function fetched(address: string, init: RequestInit, url: string): Promise<Response> {
  try {
    return await fetch(address, init)
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw serverUnreachable(url, error)
  }
}

/** The target of a redirect. */
function placeOf({ headers }: Response, address: string): string | undefined {
  const location = headers.get('location') ?? ''
  return URL.canParse(location, address) ? new URL(location, address).origin : undefined
}

async function textOf(body: AsyncIterable<Uint8Array> | null, url: string): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > LARGEST) throw answerTooLarge(url, LARGEST)
  }
  return text + decoder.decode()
}

/** The server may not be svc, so the record is read with defaults. */
async function refusal(response: Response, url: string) {
  const { error, error_code, details } = recordOf(await textOf(response.body, url))
  // the model endpoints answer with errors of other APIs: an object
  const message: unknown = typeof error === 'object' ? Object(error).message : error
  const record = {
    error: typeof message === 'string' ? message : `the server answered ${response.status}`,
    error_code: error_code ?? (response.status === 401 ? 'AUTHENTICATION_FAILED' : `HTTP_${response.status}`),
    details: details ?? {},
  }
  return errorFromRecord(record, { where: url })
}

function recordOf(text: string): Partial<ErrorRecord> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/**
 * Returns the address of the named server, or of the one of this home; undefined if the command shall start its own host.
 * Throws SERVER_AMBIGUOUS.
 */
export async function serverUrl({ url, port, local, config }: ServerChoice): Promise<string | undefined> {
  if (url !== undefined) return url
  return local || config !== undefined ? undefined : await runningUrl(port)
}

/**
 * The server of this home, for its operator; undefined if none runs. A named server or header asks for HTTP instead. Throws
 * SERVER_AMBIGUOUS, and SERVER_NONE for a port without a server.
 */
export async function operatorServer(home: string, port: number | undefined, ended: AbortSignal) {
  using running = await reachServerIfAny(home, { port, fits: hasApi })
  return running && createOperatorClient({ home, port: running.info.port, url: running.info.url }, ended)
}

/** A tool server has no API. */
export const hasApi = ({ surface }: Pick<ServerInfo, 'surface'>): boolean => surface === undefined

async function runningUrl(port: number | undefined): Promise<string | undefined> {
  try {
    using server = await reachServer(svcHome(), { port, fits: hasApi })
    return server.info.url === '' ? undefined : server.info.url
  } catch (error) {
    if (codeOf(error) !== 'SERVER_NONE') throw error
    // a server of another home or machine can listen there
    return port === undefined ? undefined : `http://127.0.0.1:${port}`
  }
}

/** Options of `svc drain`. */
interface DrainOptions {
  readonly port?: number | undefined
  /** Seconds; default: `server.shutdown_delay`. */
  readonly delay?: number | undefined
  readonly json?: boolean | undefined
}

/** Stops the running server without a failed request, and waits until it has ended. */
export async function drain({ port, delay, json }: DrainOptions): Promise<void> {
  const home = svcHome()
  const began = performance.now()
  using server = await reachServer(home, { port })
  const { pid, url } = server.info
  const ctx = systemContext(new AbortController().signal, 'svc drain')
  await server.control.stop(delay === undefined ? undefined : delay * 1000, ctx)
  while (await runs(home, pid)) await sleep(LOOK_MS)
  const seconds = Math.round((performance.now() - began) / 100) / 10
  process.stdout.write(json ? `${JSON.stringify({ url, pid, seconds })}\n` : `${url} has ended after ${seconds} s\n`)
}

const LOOK_MS = 100

async function runs(home: string, pid: number): Promise<boolean> {
  const servers = await findServers(home)
  for (const server of servers) server[Symbol.dispose]()
  return servers.some(({ info }) => info.pid === pid)
}

/** Reloads the running server; resolves with the exit code, 1 when its new configuration has problems. */
export async function reload({ port, json }: { port?: number | undefined; json?: boolean | undefined }): Promise<number> {
  using server = await reachServer(svcHome(), { port })
  const result = await server.control.reload(systemContext(new AbortController().signal, 'svc reload'))
  const failed = result.problems.length > 0
  const text = json ? JSON.stringify(reloadedFacts(result)) : await reloadedText(result)
  const stream = failed && !json ? process.stderr : process.stdout
  stream.write(`${text}\n`)
  return failed ? 1 : 0
}
