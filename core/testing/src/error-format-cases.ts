import assert from 'node:assert/strict'
import { type ErrorFormat, type FailedRequest, ROUTE_HEADERS } from '@svc/core/contracts'
import { abortable, assertPlain, atOnce, caseMaker, frozen, type KitCase, outcome } from './kit-case.ts'
import type { ItemUnderTest } from './plugin-host.ts'

/** Errors of each kind, as the server passes them on. */
const FAILURES: readonly Pick<FailedRequest, 'status' | 'retryAfter'>[] = [
  ...[400, 401, 403, 404, 405, 413, 415, 500, 504].map(status => ({ status })),
  { status: 429, retryAfter: 7 },
  { status: 503, retryAfter: 1 },
]
const CODES: Readonly<Record<number, string>> = {
  400: 'INVALID_VALUE',
  401: 'AUTHENTICATION_FAILED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'RATE_LIMITED',
  500: 'INTERNAL_ERROR',
  503: 'UNAVAILABLE',
  504: 'TIMEOUT',
}
const LONGEST = 65_536

/** Cases for a format of errors: errors of each kind, also with a long text. */
export function errorFormatCases({ open }: ItemUnderTest<ErrorFormat>): KitCase[] {
  const make = caseMaker(open)
  const each =
    (error: string) =>
    async ({ item }: { readonly item: ErrorFormat }) => {
      for (const failure of FAILURES) {
        const record = { success: false, error, error_code: CODES[failure.status] ?? '', details: { field: 'model' } } as const
        const failed = frozen({ record, ...failure, requestId: 'request-1', method: 'POST', path: `${item.path}/x` })
        const { value, error: thrown } = await atOnce(outcome(item.format(failed, abortable().ctx)), 'a formatted error')
        assert.equal(thrown, undefined, `it fails for the status ${failure.status}`)
        checkFormatted(value)
      }
    }
  return [make('formats an error of each kind', each('it failed')), make('formats a long text', each('"\n€'.repeat(3_000)))]
}

function checkFormatted(formatted: Awaited<ReturnType<ErrorFormat['format']>> | undefined): void {
  assertPlain(formatted, 'formatted error')
  const { body, headers = {}, event, ...others } = formatted!
  assert.deepEqual(Object.keys(others), [], 'it returns body, headers and event; the server sets the status')
  assert.ok(typeof body === 'object' && !Array.isArray(body), 'its body is an object')
  assert.ok(JSON.stringify(body).length <= LONGEST, `its body has at most ${LONGEST} characters`)
  assert.ok(event === undefined || (event.endsWith('\n\n') && event.length <= LONGEST), 'its event ends with an empty line')
  const refused = Object.keys(headers).filter(name => !isAllowed(name.toLowerCase()))
  assert.deepEqual(refused, [], `it has headers that the server leaves out: ${refused.join(', ')}`)
  for (const [name, value] of Object.entries(headers)) assert.match(value, /^[\x20-\x7e]{0,1000}$/, `its header ${name}`)
}

const isAllowed = (name: string) =>
  (ROUTE_HEADERS.api.includes(name) || ROUTE_HEADERS.apiPrefixes.some(prefix => name.startsWith(prefix))) &&
  !ROUTE_HEADERS.apiReserved.includes(name)
