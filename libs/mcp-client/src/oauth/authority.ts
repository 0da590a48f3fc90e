import type { OAuthDiscoveryState } from '@modelcontextprotocol/client'
import { type SvcError, svcError } from '@svc/core'

/** A login that somebody was sent to. */
interface Attempt {
  readonly state: string
  readonly page: URL
  readonly discovery: OAuthDiscoveryState | undefined
  /** The authorization server that the operator names. */
  readonly pinned: string | undefined
}

const bare = (issuer: string) => issuer.replace(/\/$/, '')
const issuerOf = (found: OAuthDiscoveryState | undefined) =>
  found?.authorizationServerMetadata?.issuer ?? found?.authorizationServerUrl

/** Throws OAUTH_FAILED where the tool server names another authorization server than the operator does. */
export function checkIssuer(found: OAuthDiscoveryState, pinned: string | undefined): void {
  const issuer = issuerOf(found) ?? ''
  if (pinned === undefined || bare(issuer) === bare(pinned)) return
  throw loginFailed(
    `the tool server names the authorization server ${shown(issuer)}, and the configuration ${pinned}`,
    'correct oauth.issuer of the server if it has moved; do not log in otherwise'
  )
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** The page where somebody logs in. Throws OAUTH_FAILED for one that a browser would not load over TLS. */
export function checkedPage(page: URL): URL {
  if (page.protocol === 'https:' || (page.protocol === 'http:' && LOOPBACK.test(page.hostname))) return page
  throw loginFailed(
    `the authorization server has its login page at ${shown(page.href)}, which is not https`,
    'do not log in there'
  )
}

/**
 * What came back from the page. An answer with another state belongs to another login. A page at another origin than its issuer may be that of another server, to
 * which a hostile one has sent the person (mix-up, RFC 9207): then the answer must name the issuer, or the operator must have. Throws OAUTH_FAILED.
 */
export function checkedAnswer(answer: URLSearchParams, { state, page, discovery, pinned }: Attempt): URLSearchParams {
  if (answer.get('state') !== state) throw loginFailed('the answer to the login belongs to another one', 'log in again')
  const issuer = issuerOf(discovery)
  const isAtHome = issuer !== undefined && URL.parse(issuer)?.origin === page.origin
  if (isAtHome || pinned !== undefined || (answer.has('iss') && answer.get('iss') === issuer)) return answer
  throw loginFailed(
    `the login page at ${page.origin} is not at its authorization server ${shown(issuer ?? '')}, and the answer does not say whose it is: set oauth.issuer if both belong together`,
    'if both belong together, set oauth.issuer of the server'
  )
}

const SHOWN = 200
const shown = (text: string) => JSON.stringify(text.slice(0, SHOWN))

const loginFailed = (message: string, hint: string): SvcError => svcError('OAUTH_FAILED', message, { hint })
