import { type GuardedFetch, readBody } from '@svc/safe-fetch'
import { refused } from './errors.ts'
import { MOST_CHARACTERS } from './messages.ts'

/** The `fetch` of a guest. */
export type GuestFetch = (asked: unknown, hosts: readonly string[], signal: AbortSignal) => Promise<object>

/** Headers that could redirect a request to another host. */
const HEADERS_REFUSED = /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect|:.*)$/i
const METHODS = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/

/** Creates the `fetch` of guests: listed hosts only, text in and out. */
export function createGuestFetch(web: GuardedFetch): GuestFetch {
  return async (asked, hosts, signal) => {
    const { url, method = 'GET', headers = {}, body } = Object(asked) as Record<string, unknown>
    const all = hosts.includes('*')
    if (!all && !isListed(String(url), hosts)) throw refused(`fetch may only reach ${hosts.join(', ')}`)
    if (typeof method !== 'string' || !METHODS.test(method)) throw refused('fetch: this method is not allowed')
    if (body !== undefined && typeof body !== 'string') throw refused('fetch: the body must be a string')
    const request = { method, headers: headersOf(headers), ...(body === undefined ? {} : { body }) }
    // a redirect can lead to another host
    const limits = { bodyBytes: MOST_CHARACTERS, ...(all ? {} : { redirects: 0 }) }
    const response = await web.fetch(String(url), { signal }, { ...request, limits })
    const { bytes } = await readBody(response.body)
    return { status: response.status, url: response.url, headers: response.headers, text: new TextDecoder().decode(bytes) }
  }
}

/** Whether the list has the host of a URL: `api.example`, `*.example`, `api.example:8443`. */
function isListed(url: string, hosts: readonly string[]): boolean {
  const { hostname, host } = URL.parse(url) ?? { hostname: '', host: '' }
  return hosts.some(one => (one.startsWith('*.') ? hostname.endsWith(one.slice(1)) : one === hostname || one === host))
}

function headersOf(headers: unknown): Record<string, string> {
  const given = Object.entries(Object(headers) as object).map(([name, value]) => [name, String(value)] as const)
  const bad = given.find(([name]) => HEADERS_REFUSED.test(name))
  if (bad) throw refused(`fetch: the header ${bad[0]} is not allowed`)
  return Object.fromEntries(given)
}
