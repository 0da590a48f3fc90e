import { codeOf, messageOf, type SvcError, svcError } from '@svc/core'

// A model or a client can see these texts: they show URLs without their query, and never the addresses of a name.

const LONGEST_PATH = 200

/** The URL to show: without query, fragment and credentials. */
function shownUrl(url: URL): string {
  const { origin, pathname } = url
  return origin + (pathname.length > LONGEST_PATH ? `${pathname.slice(0, LONGEST_PATH)}…` : pathname)
}

const about = (code: string, url: URL, words: string, hint: string, more: Record<string, unknown> = {}): SvcError =>
  svcError(code, `${shownUrl(url)} ${words}`, { details: { url: shownUrl(url), ...more }, hint })

export const urlInvalid = (why: string, hint: string): SvcError => svcError('URL_INVALID', `the URL ${why}`, { hint })

export const addressForbidden = (host: string): SvcError =>
  svcError('ADDRESS_FORBIDDEN', `svc does not connect to ${host}: its address is local, private or reserved`, {
    details: { host },
    hint: 'Use a public address. The operator of this server can allow an address or a name',
  })

export const hostUnknown = (host: string): SvcError =>
  svcError('HOST_UNKNOWN', `the name ${host} has no address`, { details: { host }, hint: 'Check the name' })

export const dnsTimeout = (host: string, ms: number): SvcError =>
  svcError('HOST_UNKNOWN', `the name ${host} was not resolved within ${ms} ms`, {
    details: { host, ms },
    hint: 'Try again later',
  })

export const tooSlow = (url: URL, ms: number): SvcError =>
  about('FETCH_TIMEOUT', url, `did not end within ${ms} ms`, 'Try again later, or request less', { ms })

export const tooManyRedirects = (url: URL, most: number): SvcError =>
  about('REDIRECT_REFUSED', url, `redirects once more after ${most} redirects`, 'Use the URL that it leads to', { most })

export const redirectInvalid = (url: URL): SvcError =>
  about('REDIRECT_REFUSED', url, 'redirects to an invalid URL', 'Use the URL that it should lead to')

export const redirectWithBody = (url: URL): SvcError =>
  about('REDIRECT_REFUSED', url, 'redirects the request body to another origin', 'Send the request to the URL that it leads to')

export const bodyTooLarge = (url: URL, bytes: number, packed: boolean): SvcError =>
  about('BODY_TOO_LARGE', url, `answers with more than ${bytes} bytes${packed ? ' (compressed)' : ''}`, 'Request less', { bytes })

export const encodingUnknown = (url: URL): SvcError =>
  about('BODY_INVALID', url, 'answers in a compression that was not requested', 'Use another URL')

const bodyInvalid = (url: URL): SvcError =>
  about('BODY_INVALID', url, 'answers with a body that is truncated or not decompressible', 'Try again later')

type Maker = (url: URL, error: unknown) => SvcError

const connectionFailed: Maker = (url, error) =>
  about('CONNECTION_FAILED', url, `cannot be reached (${codeOf(error) ?? 'unknown'})`, 'Check the URL, or try again later')
const connectTimeout: Maker = url =>
  about('CONNECTION_FAILED', url, 'did not accept the connection in time', 'Check the URL, or try again later')
const certificateInvalid: Maker = (url, error) =>
  about('CERTIFICATE_INVALID', url, `has no trusted certificate (${codeOf(error)})`, 'Use another URL')
const responseTimeout: Maker = url => about('FETCH_TIMEOUT', url, 'was idle for too long', 'Try again later')
const responseInvalid: Maker = url =>
  about('RESPONSE_INVALID', url, 'answers with invalid HTTP, or with headers that are too large', 'Use another URL')

/** Error codes of undici, Node and TLS. The first matching pattern wins. */
const FAILURES: readonly (readonly [RegExp, Maker])[] = [
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, connectTimeout],
  [/^UND_ERR_(HEADERS|BODY)_TIMEOUT$/, responseTimeout],
  [/^(HPE_|HTTPParserError$|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_CONTENT_LENGTH)/, responseInvalid],
  [/CERT|SELF_SIGNED|UNABLE_TO|^ERR_(TLS|SSL)_|^EPROTO$/, certificateInvalid],
]
const OURS = /^(URL_INVALID|ADDRESS_FORBIDDEN|HOST_UNKNOWN|BODY_TOO_LARGE|BODY_INVALID|REDIRECT_REFUSED)$/

/** Converts an error of the network. */
export function fromNetwork(url: URL, error: unknown): SvcError {
  const code = codeOf(error) ?? (error as Error).name
  if (OURS.test(code)) return error as SvcError
  const found = FAILURES.find(([pattern]) => pattern.test(code))
  return (found?.[1] ?? connectionFailed)(url, error)
}

/** Converts an error while the body was read: of the body, or of the network. */
export function fromBody(url: URL, error: unknown): SvcError {
  const code = codeOf(error) ?? ''
  return /^(Z_|ERR_|ZSTD_|UND_ERR_SOCKET$)/.test(code) || /^(terminated|other side closed)$/.test(messageOf(error))
    ? bodyInvalid(url)
    : fromNetwork(url, error)
}
