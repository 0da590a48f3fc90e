/** What bounds one request, its redirects and its body together. */
export interface FetchLimits {
  /** Milliseconds for everything, the body included; default 60,000. */
  readonly totalMs: number
  /** Milliseconds from the request to the end of the response's headers; default 20,000. */
  readonly headersMs: number
  /** Milliseconds between two pieces of the body; default 20,000. */
  readonly idleMs: number
  /** Bytes of the body as they come, compressed perhaps; default 10 MiB. */
  readonly wireBytes: number
  /** Bytes of the body as they are read; default 10 MiB. */
  readonly bodyBytes: number
  /** How many redirects are followed; 0 answers the redirect itself; default 5. */
  readonly redirects: number
}

export const LIMITS: FetchLimits = {
  totalMs: 60_000,
  headersMs: 20_000,
  idleMs: 20_000,
  wireBytes: 10_485_760,
  bodyBytes: 10_485_760,
  redirects: 5,
}
