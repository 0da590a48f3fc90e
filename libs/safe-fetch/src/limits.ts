/** Limits of one request with its redirects and its body. */
export interface FetchLimits {
  /** Total milliseconds, including the body; default 60,000. */
  readonly totalMs: number
  /** Milliseconds from the request to the end of the response's headers; default 20,000. */
  readonly headersMs: number
  /** Milliseconds between two chunks of the body; default 20,000. */
  readonly idleMs: number
  /** Bytes of the body as received, possibly compressed; default 10 MiB. */
  readonly wireBytes: number
  /** Bytes of the decompressed body; default 10 MiB. */
  readonly bodyBytes: number
  /** Maximum redirects to follow; 0 returns the redirect itself; default 5. */
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
