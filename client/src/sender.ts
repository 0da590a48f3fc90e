import { ApiError, responseError } from './errors.ts'

/** A credential, or a function that returns it for each request. */
export type Credential = string | (() => string | Promise<string>)

export interface RetryOptions {
  /** Maximum number of repetitions; default 2. */
  readonly retries?: number
  /** Time before the first repetition; it doubles with each. Default 250. */
  readonly minDelayMs?: number
  /** Longest time that the client waits before a repetition. If the server asks for more, the request fails. Default 30,000. */
  readonly maxDelayMs?: number
}

interface SendOptions {
  readonly signal?: AbortSignal | undefined
  /** Time in which the whole response must arrive; for a stream, its headers. It holds for each attempt. */
  readonly timeoutMs: number
  readonly retry: RetryOptions | false
  /** Maximum characters of a response that is no stream. */
  readonly maxLength: number
  /** Leaves the body of a successful response unread. */
  readonly isStream: boolean
}

export interface SenderOptions {
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined
  readonly apiKey?: Credential | undefined
  readonly token?: Credential | undefined
}

/** Sends a request, repeats it where that is safe, and returns the response with status 2xx. Throws ApiError, and the reason of an abort. */
export type Sender = (request: Request, options: SendOptions) => Promise<Response>

export function createSender(options: SenderOptions): Sender {
  return async (request, send) => {
    for (let tried = 0; ; tried += 1) {
      const attempt = request.clone()
      await authorize(attempt.headers, options)
      const result = await sendOnce(attempt, options, send).catch((error: unknown) => {
        request.signal.throwIfAborted()
        return error instanceof ApiError ? error : connectionFailed(error)
      })
      if (!(result instanceof ApiError)) return result
      const delay = delayBefore(result, tried, isRepeatable(request), send.retry)
      if (delay === undefined) throw result
      await sleep(delay, request.signal)
    }
  }
}

async function authorize(headers: Headers, { apiKey, token }: SenderOptions): Promise<void> {
  if (apiKey !== undefined) headers.set('x-api-key', await credentialOf(apiKey, 'apiKey'))
  if (token !== undefined) headers.set('authorization', `Bearer ${await credentialOf(token, 'token')}`)
}

async function credentialOf(credential: Credential, name: string): Promise<string> {
  const value = typeof credential === 'string' ? credential : await credential()
  // checked here, because the error of Headers contains the value
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value
  throw new ApiError(`${name} is empty or contains characters that a header cannot have`, {
    code: 'CREDENTIAL_INVALID',
    hint: `Set ${name} to visible ASCII characters without white space`,
  })
}

async function sendOnce(request: Request, { fetch: own }: SenderOptions, options: SendOptions): Promise<Response | ApiError> {
  const { timeoutMs, maxLength, isStream } = options
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(requestTimeout(timeoutMs)), timeoutMs)
  try {
    // with the credentials, a redirect must not lead to another server
    const limited = new Request(request, { signal: AbortSignal.any([request.signal, limit.signal]), redirect: 'manual' })
    const response = await (own ? own(limited) : fetch(limited))
    if (!response.ok) return responseError(response, await textOf(response, maxLength))
    if (isStream) return response
    const text = await textOf(response, maxLength)
    return new Response(text === '' ? null : text, { status: response.status, headers: response.headers })
  } catch (error) {
    throw limit.signal.aborted && !request.signal.aborted ? limit.signal.reason : error
  } finally {
    clearTimeout(timer)
  }
}

async function textOf({ body }: Response, maxLength: number): Promise<string> {
  const reader = body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (reader) {
    const { done, value } = await reader.read()
    text += decoder.decode(value, { stream: !done })
    if (done) break
    if (text.length <= maxLength) continue
    reader.cancel().catch(() => {}) // the connection may be broken already
    throw new ApiError(`the response has more than ${maxLength} characters`, {
      code: 'RESPONSE_TOO_LARGE',
      hint: 'Ask for a smaller page, or set maxResponseLength to a higher number',
    })
  }
  return text
}

const requestTimeout = (timeoutMs: number) =>
  new ApiError(`the server did not respond within ${timeoutMs} ms`, {
    code: 'REQUEST_TIMEOUT',
    hint: 'Set timeoutMs to a longer time, or check the server',
  })

/** What `fetch` throws is a TypeError whose cause has the code, in Node.js only. */
export const connectionFailed = (error: unknown): ApiError =>
  new ApiError(`the connection failed: ${reasonOf(error)}`, { code: 'CONNECTION_FAILED', cause: error })

function reasonOf(error: unknown): string {
  const { message, cause } = (error ?? {}) as { readonly message?: unknown; readonly cause?: unknown }
  const { code, message: deeper } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  return [code, deeper, message].find(text => typeof text === 'string' && text !== '')?.toString() ?? 'unknown reason'
}

/** Whether the request reached no server, so that even a POST can be sent again. */
const isRefused = ({ code, cause }: ApiError) =>
  code === 'CONNECTION_FAILED' && /ECONNREFUSED/.test(String(Object((cause as Error | undefined)?.cause).code))

const isRepeatable = ({ method, headers }: Request) => /^(GET|HEAD)$/.test(method) || headers.has('idempotency-key')

/** Whether another attempt can succeed: the connection failed, or the server or a proxy cannot answer at present. */
export const isPassing = ({ code, status, details }: ApiError): boolean =>
  code === 'CONNECTION_FAILED' ||
  ([429, 502, 503, 504].includes(status) && (details as { readonly retryable?: unknown }).retryable !== false)

/** Milliseconds before the next attempt; undefined if there is none. */
function delayBefore(error: ApiError, tried: number, isSafe: boolean, retry: RetryOptions | false): number | undefined {
  if (retry === false || tried >= (retry.retries ?? 2)) return undefined
  const { status, retryAfterMs } = error
  const { maxDelayMs = 30_000 } = retry
  if ((status === 429 || status === 503) && retryAfterMs !== undefined)
    return retryAfterMs <= maxDelayMs ? retryAfterMs + jitterOf(100) : undefined
  const isAgain = isRefused(error) || (isSafe && status !== 429 && isPassing(error))
  return isAgain ? backOff(tried, retry) : undefined
}

/** Doubles with each attempt, less a random half, so that clients do not come back all at once. */
export function backOff(tried: number, { minDelayMs = 250, maxDelayMs = 30_000 }: RetryOptions): number {
  const longest = Math.min(maxDelayMs, minDelayMs * 2 ** Math.min(tried, 30))
  return longest / 2 + jitterOf(longest / 2)
}

const jitterOf = (ms: number) => Math.random() * ms

/** Rejects with the reason of the abort. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason as Error)
      else resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
  })
}
