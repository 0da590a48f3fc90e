import { type SvcError, svcError } from '@svc/core'

const SHOWN = 200
const shown = (text: string) => JSON.stringify(text.slice(0, SHOWN))
const bare = (issuer: string) => issuer.replace(/\/$/, '')

const loginFailed = (message: string, hint: string): SvcError => svcError('OAUTH_FAILED', message, { hint })

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** Whether a user can open a page that a server names: it uses https, or is on this machine. */
export const isSafePage = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname))

/** Throws OAUTH_FAILED if the MCP server names another authorization server than the configuration (`pinned`). */
export function checkIssuer(issuer: string, pinned: string | undefined): void {
  if (pinned === undefined || bare(issuer) === bare(pinned)) return
  throw loginFailed(
    `the server names the authorization server ${shown(issuer)}, but oauth.issuer is ${pinned}`,
    'Correct oauth.issuer if the authorization server has moved. Otherwise do not log in'
  )
}

/** Throws OAUTH_FAILED for a login page without TLS. */
export function checkLoginPage(page: URL): void {
  if (isSafePage(page)) return
  throw loginFailed(`the login page ${shown(page.href)} of the authorization server does not use https`, 'Do not log in there')
}

/** A login attempt after a user has opened its page; `pinned` is the issuer in the configuration. */
interface LoginAttempt {
  readonly state: string
  readonly page: URL
  readonly issuer: string | undefined
  readonly pinned: string | undefined
}

/**
 * Checks the query that came back from the login page. Another state belongs to another login. A login page at another origin than its issuer can belong to another
 * server, to which a hostile one has sent the person (mix-up attack, RFC 9207): then the query or the configuration must name the issuer. Throws OAUTH_FAILED.
 */
export function checkLoginAnswer(answer: URLSearchParams, { state, page, issuer, pinned }: LoginAttempt): void {
  if (answer.get('state') !== state) throw loginFailed('the answer belongs to another login', 'Log in again')
  const isSameOrigin = issuer !== undefined && URL.parse(issuer)?.origin === page.origin
  if (isSameOrigin || pinned !== undefined || (answer.has('iss') && answer.get('iss') === issuer)) return
  throw loginFailed(
    `the login page at ${page.origin} does not belong to the authorization server ${shown(issuer ?? '')}, and the answer does not name its issuer; set oauth.issuer if both belong together`,
    'Set oauth.issuer of the server if both belong together'
  )
}

/** A login page that also requests the scopes in `wanted`. */
export function withScope(page: URL, wanted: string | undefined): URL {
  if (wanted === undefined) return page
  const scopes = new Set([...(page.searchParams.get('scope') ?? '').split(' '), ...wanted.split(' ')].filter(Boolean))
  const wider = new URL(page)
  wider.searchParams.set('scope', [...scopes].join(' '))
  return wider
}
