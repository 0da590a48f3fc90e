import type { ModelRequest, NativeRequest } from '@svc/core/contracts'

/** The original of a request, if it is in the protocol of the server. */
export const nativeOf = ({ native }: ModelRequest, protocol: string | undefined): NativeRequest | undefined =>
  native !== undefined && native.protocol === protocol ? native : undefined

/** A header value without control characters. Longer values are not sent. */
const VALUE = /^[\t\x20-\x7e]{1,8192}$/

/**
 * The headers of an original request that go to the server: those of `allowed`. A caller can send any header, so credentials, routing and
 * framing headers never pass.
 */
export function nativeHeaders({ headers = {} }: NativeRequest, allowed: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name, value]) => allowed.includes(name) && typeof value === 'string' && VALUE.test(value))
  )
}
