import { redirectInvalid, redirectWithBody, urlInvalid } from './errors.ts'

/** One request of a chain of redirects. */
export interface Step {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

/** Reads a URL that somebody wrote. Throws URL_INVALID. */
export function checkUrl(written: string, ports: readonly number[] | undefined, base?: URL): URL {
  const url = URL.parse(written, base?.href)
  if (!url) throw urlInvalid('is none', 'write it whole, like https://example.com/page')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw urlInvalid(`has the scheme ${url.protocol.slice(0, -1)}`, 'only http and https can be fetched')
  if (url.username !== '' || url.password !== '') throw urlInvalid('holds a user name or password', 'take it out of the URL')
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  if (ports && !ports.includes(port)) throw urlInvalid(`asks for port ${port}`, `only these can be fetched: ${ports.join(', ')}`)
  return url
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** What another origin may see of the headers: everything else could be a key. */
const HARMLESS = new Set(['accept', 'accept-encoding', 'accept-language', 'user-agent', 'content-type'])
const OF_BODY = /^content-/

/** The next step where a response redirects. Throws URL_INVALID, REDIRECT_REFUSED. */
export function redirectOf(step: Step, status: number, location: string | undefined, ports: readonly number[] | undefined) {
  if (location === undefined || !REDIRECTS.has(status)) return undefined
  if (!URL.canParse(location, step.url.href)) throw redirectInvalid(step.url)
  const url = checkUrl(location, ports, step.url)
  const same = url.origin === step.url.origin
  const asGet = (status === 303 && step.method !== 'HEAD') || (status < 303 && step.method === 'POST')
  if (!same && !asGet && step.body !== undefined) throw redirectWithBody(step.url)
  const keeps = (name: string) => (same || HARMLESS.has(name)) && !(asGet && OF_BODY.test(name))
  const headers = Object.fromEntries(Object.entries(step.headers).filter(([name]) => keeps(name)))
  return { url, headers, method: asGet ? 'GET' : step.method, body: asGet ? undefined : step.body } satisfies Step
}
