import { Body, type Connection, type Controller, type Handler, headerOf, type RequestParts } from './connection.ts'
import { jsonLate, socketFailure } from './failure.ts'
import { retryAfterOf } from './retry-after.ts'

type Headers = Parameters<NonNullable<Handler['onResponseStart']>>[2]

/** One answer, whole. `body` is parsed where it was JSON, else text. */
interface WholeAnswer {
  readonly status: number
  readonly type: string
  readonly body: unknown
  /** It was longer than the limit. */
  readonly over: boolean
  readonly retryAfterMs: number | undefined
}

/** Sends a request and gathers its answer. Throws MODEL_FAILED, and what the signal aborted with. */
export function askWhole(
  connection: Connection,
  parts: RequestParts,
  { provider, bodyBytes, jsonMs }: { readonly provider: string; readonly bodyBytes: number; readonly jsonMs: number },
  signal: AbortSignal
): Promise<WholeAnswer> {
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  const { promise, resolve, reject } = Promise.withResolvers<WholeAnswer>()
  const fail = (error: unknown) => reject(socketFailure(provider, error))
  const gathered = new GatheredAnswer(bodyBytes, resolve, fail)
  const stop = (reason: Error) => {
    reject(reason)
    gathered.stop(reason)
  }
  const aborted = () => stop(signal.reason as Error)
  const late = setTimeout(() => stop(jsonLate(provider, jsonMs)), jsonMs)
  signal.addEventListener('abort', aborted, { once: true })
  connection.send(parts, gathered, fail)
  return promise.finally(() => {
    clearTimeout(late)
    signal.removeEventListener('abort', aborted)
  })
}

/** Gathers one HTTP answer up to a limit. */
class GatheredAnswer implements Handler {
  readonly #body: Body
  readonly #done: (answer: WholeAnswer) => void
  readonly #failed: (error: unknown) => void
  #head: Omit<WholeAnswer, 'body' | 'over'> | undefined
  #controller: Controller | undefined
  #stopped: Error | undefined

  constructor(limit: number, done: (answer: WholeAnswer) => void, failed: (error: unknown) => void) {
    this.#body = new Body(limit)
    this.#done = done
    this.#failed = failed
  }

  stop(reason: Error): void {
    this.#stopped = reason
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#stopped) controller.abort(this.#stopped)
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (status < 200) return
    this.#head = { status, type: headerOf(headers, 'content-type'), retryAfterMs: retryAfterOf(headers) }
  }

  onResponseData(controller: Controller, chunk: Uint8Array): void {
    this.#body.push(chunk)
    if (!this.#body.over) return
    this.onResponseEnd()
    controller.abort(new Error('the answer is too long'))
  }

  onResponseEnd(): void {
    if (this.#head) this.#done({ ...this.#head, body: this.#body.over ? '' : this.#body.value(), over: this.#body.over })
  }

  onResponseError(_: Controller, error: Error): void {
    this.#failed(error)
  }
}
