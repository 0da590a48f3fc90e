import { codeOf, type CallContext } from '@svc/core'
import type { ModelEvent } from '@svc/core/contracts'
import {
  answerFailure,
  checkBaseUrl,
  createHide,
  malformed,
  redirected,
  retryAfterOf,
  secretsOf,
  socketFailure,
} from '@svc/provider-http'

interface Server {
  readonly provider: string
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
}
type Read = (body: ReadableStream<Uint8Array>) => AsyncIterable<ModelEvent>

/**
 * Posts JSON and streams the response. Throws MODEL_FAILED, or the abort reason of the caller. Closes the socket when the caller
 * aborts or stops reading, and when the plugin closes.
 */
export function createPost({ provider, baseUrl, headers, secrets }: Server, closing: AbortSignal) {
  const { origin, path } = checkBaseUrl(baseUrl, provider)
  const hide = createHide(secretsOf(secrets, headers))

  const open = async (to: string, body: unknown, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> => {
    const answer = await fetch(`${origin}${path}${to}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'manual',
      signal,
    })
    if (answer.ok && answer.body) return answer.body
    // The body is not needed, and can be endless.
    await answer.body?.cancel()
    const { status } = answer
    if (status >= 300 && status < 400) throw redirected(provider, status)
    const retryAfterMs = retryAfterOf(Object.fromEntries(answer.headers))
    throw answerFailure(
      { provider, status, body: undefined, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
      undefined,
      hide
    )
  }

  return async function* post(to: string, body: unknown, read: Read, ctx: CallContext): AsyncGenerator<ModelEvent, void> {
    try {
      yield* read(await open(to, body, AbortSignal.any([ctx.signal, closing])))
    } catch (error) {
      ctx.signal.throwIfAborted()
      throw failureOf(provider, error)
    }
  }
}

/** Converts other errors: a malformed line, or a broken connection. */
function failureOf(provider: string, error: unknown): unknown {
  if (codeOf(error) === 'MODEL_FAILED') return error
  if (error instanceof SyntaxError || error instanceof RangeError) return malformed(provider)
  return socketFailure(provider, (error as { cause?: unknown }).cause)
}
