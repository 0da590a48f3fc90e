import { serverFetch } from './api.ts'
import type { PageAnswer, PageRequest } from './bridge.ts'

const REQUEST_MS = 30_000
const LONGEST_ANSWER = 1_048_576

/** An answer with the id under which the log has its request. */
interface NamedAnswer extends PageAnswer {
  readonly requestId: string | undefined
}

/** Sends a request of a plugin's page with the session of the person: the page gets the answer, never the credential. */
export async function sendForPage({ method, path, body }: PageRequest, signal: AbortSignal): Promise<NamedAnswer> {
  const response = await serverFetch(path, {
    method,
    redirect: 'error',
    headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
  })
  const text = await textOf(response)
  const isJson = /^application\/(?:[\w.+-]+\+)?json/.test(response.headers.get('content-type') ?? '')
  const requestId = response.headers.get('x-request-id') ?? undefined
  return { status: response.status, body: isJson && text !== '' ? (JSON.parse(text) as unknown) : text, requestId }
}

/** The text of an answer. A longer one is an error, so that no page fills the memory of the console. */
async function textOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of body ?? []) {
    text += decoder.decode(piece, { stream: true })
    if (text.length > LONGEST_ANSWER) throw Object.assign(new Error('the answer is too long'), { code: 'TOO_LARGE' })
  }
  return text + decoder.decode()
}
