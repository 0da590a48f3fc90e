import { codeOf, svcHome, systemContext } from '@svc/core'
import type { ErrorRecord, RequestMethod, RequestOptions, ServerChoice, ServerClient } from '@svc/core/contracts'
import { readEvents } from '@svc/provider-http/sse'
import { reachServer, type ServerInfo } from '@svc/runtime'
import { reloadedFacts, reloadedText } from './announcer.ts'
import { errorFromRecord } from './command/errors.ts'
import { answerTooLarge, serverRedirects, serverUnreachable, urlInvalid } from './errors.ts'

/** A list of models takes a server at most 5 s, a probe 2 s. */
const ANSWER_MS = 15_000
const LARGEST = 16 * 1024 * 1024

/**
 * A client of the server at `url`. Sends `SVC_API_KEY` (an API key or a token) if it is set. `ended` aborts requests without
 * their own signal. Throws URL_INVALID.
 */
export function createServerClient(url: string, ended: AbortSignal): ServerClient {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw urlInvalid(url)
  const common = credentialHeaders(process.env.SVC_API_KEY)
  const send = async (path: string, init: RequestInit) => {
    const response = await reach(new URL(path, url).href, init, url)
    if (!response.ok || response.body === null) throw await refusal(response, url)
    return response.body
  }
  const sent = (body: object | undefined) =>
    body === undefined
      ? { headers: common }
      : { headers: { ...common, 'content-type': 'application/json' }, body: JSON.stringify(body) }
  return {
    url,
    async request<T>(method: RequestMethod, path: string, { body, signal = ended }: RequestOptions = {}) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)])
      try {
        const answer = await send(path, { method, signal: limited, ...sent(body) })
        // the server is of the same project
        return JSON.parse(await textOf(answer, url)) as T
      } catch (error) {
        throw limited.aborted && !signal.aborted ? serverUnreachable(url, error) : error
      }
    },
    async *stream(method, path, { body, signal = ended } = {}) {
      const { headers, ...rest } = sent(body)
      const events = await send(path, { method, signal, ...rest, headers: { ...headers, accept: 'text/event-stream' } })
      for await (const { event, data } of readEvents(events)) yield { event, data }
    },
  }
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
  const record = {
    error: error ?? `the server answered ${response.status}`,
    error_code: error_code ?? `HTTP_${response.status}`,
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

/** The prefix of tokens of `svc tokens create`. */
const TOKEN = /^svc_/

/** The header for `SVC_API_KEY`: an API key, or a token of `svc tokens create`. */
export function credentialHeaders(key: string | undefined): Record<string, string> {
  if (!key) return {}
  return TOKEN.test(key) ? { authorization: `Bearer ${key}` } : { 'x-api-key': key }
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
