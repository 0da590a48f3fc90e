import type { ScriptLimits } from '@svc/core/contracts'
import { type GuardedFetch, readBody } from '@svc/safe-fetch'
import type { ProtectedView } from '@svc/safe-fs'
import { LRUCache } from 'lru-cache'
import { refused } from './errors.ts'
import type { GuestFiles } from './guest-files.ts'
import { MOST_CHARACTERS } from './messages.ts'
import type { RequestHandler } from './pool.ts'

type Grants = Pick<ScriptLimits, 'network' | 'paths'>

/** Maximum lists of folders that are kept open. They come from configurations. */
const MAX_OPEN = 64

/** Creates the handlers for requests of guests. A handler allows only the granted hosts and folders. */
export function createRequestHandlers(fetch: GuestFetch, protectedPaths: ProtectedView): (grants: Grants) => RequestHandler {
  const folders = new LRUCache<string, Promise<GuestFiles>>({ max: MAX_OPEN })
  const filesOf = (paths: readonly string[]): Promise<GuestFiles> => {
    const key = JSON.stringify(paths)
    const known = folders.get(key)
    if (known) return known
    const opened = openFiles(paths, protectedPaths).catch(() => {
      folders.delete(key)
      // the guest must not learn the path; the operator gets the error at startup
      throw refused('a folder of files does not exist')
    })
    folders.set(key, opened)
    return opened
  }
  return ({ network = [], paths = [] }) =>
    async (name, json, signal) => {
      const asked = Object(JSON.parse(json)) as { readonly path?: unknown; readonly content?: unknown }
      // the thread checks this too, but a guest could have escaped from its engine
      if (name === 'fetch' ? network.length === 0 : paths.length === 0) throw refused(`${name} is not allowed in the sandbox`)
      if (name === 'fetch') return packed(await fetch(asked, network, signal))
      const files = await filesOf(paths)
      const path = textOf(asked.path, 'the path')
      if (name === 'write') return packed(await files.write(path, textOf(asked.content, 'the content'), signal))
      return packed(await files[name](path, signal))
    }
}

/** Loads the code for files at the first use: most hosts grant no files. */
const openFiles = async (paths: readonly string[], protectedPaths: ProtectedView): Promise<GuestFiles> =>
  (await import('./guest-files.ts')).openGuestFiles(paths, protectedPaths)

function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw refused(`files: ${what} must be a string`)
  return value
}

function packed(answer: unknown): string {
  const json = JSON.stringify(answer)
  if (json.length > MOST_CHARACTERS * 2) throw refused('the answer is too large')
  return json
}

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
  return hosts.some(item => (item.startsWith('*.') ? hostname.endsWith(item.slice(1)) : item === hostname || item === host))
}

function headersOf(headers: unknown): Record<string, string> {
  const given = Object.entries(Object(headers) as object).map(([name, value]) => [name, String(value)] as const)
  const bad = given.find(([name]) => HEADERS_REFUSED.test(name))
  if (bad) throw refused(`fetch: the header ${bad[0]} is not allowed`)
  return Object.fromEntries(given)
}
