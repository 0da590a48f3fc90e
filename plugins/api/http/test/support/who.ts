import type { AuthScheme, Route } from '@svc/core/contracts'
import { svcError } from '@svc/core'

/** Says who asks, as a route sees it. */
export const who: Route = {
  method: 'GET',
  path: '/who',
  summary: 'Says who asks',
  scope: 'read',
  handle: async (_request, { principal, trace }) => ({ body: { ...principal, ...(trace ? { trace } : {}) } }),
}
/** Open to everybody. */
export const free: Route = {
  method: 'GET',
  path: '/free',
  summary: 'Open to everybody',
  uncounted: true,
  handle: async (_request, { principal }) => ({ body: { ...principal } }),
}

/** A scheme: these keys under one header, each with its principal. */
export const keys = (
  header: string,
  known: Readonly<Record<string, { readonly id: string; readonly scopes: readonly string[] }>>,
  challenge = `Key header="${header}"`
): AuthScheme => ({
  headers: [header],
  challenge,
  async authenticate({ headers }) {
    const given = headers[header]
    if (given === undefined) return undefined
    const holder = Object.hasOwn(known, given) ? known[given] : undefined
    if (!holder) throw svcError('AUTHENTICATION_FAILED', 'the key is not valid')
    return holder
  },
})
