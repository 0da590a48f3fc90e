import { tooLarge } from '@svc/provider-http'
import type { Dispatcher } from 'undici'

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController
type Headers = Parameters<NonNullable<Handler['onResponseStart']>>[2]

/** Bytes that an upstream may send. */
export interface SizeLimits {
  /** A whole answer. */
  readonly answer: number
  /** An answer that is an error. */
  readonly error: number
  /** A line: parsers of event streams keep it until it ends. */
  readonly line: number
}

/** A layer of undici that breaks off answers beyond the limits, before anybody unpacks or gathers them. */
export const capped =
  (provider: string, limits: SizeLimits): Dispatcher.DispatcherComposeInterceptor =>
  dispatch =>
  (options, handler) =>
    dispatch(options, new Capped(handler, provider, limits))

const NEWLINE = 10

class Capped implements Handler {
  readonly #handler: Handler
  readonly #provider: string
  readonly #limits: SizeLimits
  #left: number
  #line = 0

  constructor(handler: Handler, provider: string, limits: SizeLimits) {
    this.#handler = handler
    this.#provider = provider
    this.#limits = limits
    this.#left = limits.answer
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#handler.onRequestStart?.(controller, context)
  }

  onResponseStart(controller: Controller, status: number, headers: Headers, words?: string): void {
    if (status >= 400) this.#left = this.#limits.error
    // Asked for as it is: what is packed all the same may unpack to any size.
    const coding = String(headers['content-encoding'] ?? 'identity')
    if (coding !== 'identity') return this.#refuse(controller, `a packed answer (${coding.slice(0, 20)}) that nobody asked for`)
    this.#handler.onResponseStart?.(controller, status, headers, words)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#left -= chunk.length
    const last = chunk.lastIndexOf(NEWLINE)
    this.#line = last < 0 ? this.#line + chunk.length : chunk.length - last - 1
    if (this.#left < 0) return this.#refuse(controller, 'an answer that is too large')
    if (this.#line > this.#limits.line) return this.#refuse(controller, 'a frame that is too large')
    this.#handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(controller: Controller, trailers: Headers): void {
    this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Controller, error: Error): void {
    this.#handler.onResponseError?.(controller, error)
  }

  #refuse(controller: Controller, what: string): void {
    controller.abort(tooLarge(this.#provider, what))
  }
}
