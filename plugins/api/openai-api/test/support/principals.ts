import { AuthSchemes } from '@svc/core/contracts'
import { item } from '@svc/testing'

/** Callers by their key in the header `x-test-key`: each may chat and read. */
export const principals = item(AuthSchemes, 'key', {
  headers: ['x-test-key'],
  challenge: 'TestKey',
  async authenticate({ headers }: { headers: Readonly<Record<string, string>> }) {
    const key = headers['x-test-key']
    return key === undefined ? null : { id: key, scopes: key === 'root' ? ['admin', 'chat', 'read'] : ['chat', 'read'] }
  },
} as never)

export const as = (key: string) => ({ 'x-test-key': key })
