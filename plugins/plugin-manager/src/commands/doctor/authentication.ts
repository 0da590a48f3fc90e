import { isIP } from 'node:net'
import { messageOf, type RunningHost, type SvcError, systemUse, within } from '@svc/core'
import { type AuthScheme, AuthSchemes } from '@svc/core/contracts'
import { fail, type Finding, ok, warn } from './finding.ts'

const NAME = 'authentication'
const LIMIT_MS = 30_000

/** Whether who comes from outside is asked for a credential, and whether each scheme can check one: what would fail the start of a server. */
export async function authenticationFindings(
  host: RunningHost,
  server: { readonly host: string; readonly auth: { readonly enabled: boolean } },
  signal: AbortSignal
): Promise<Finding[]> {
  const schemes = host.slot(AuthSchemes).entries()
  const prepared = (asked: typeof schemes) => Promise.all(asked.map(([name, scheme]) => prepare(name, scheme, signal)))
  if (!server.auth.enabled) {
    const off = isLoopback(server.host) ? ok(NAME, `off, and only this machine reaches ${server.host}`) : open(server.host)
    return [off, ...(await prepared(schemes.filter(([, { always }]) => always)))]
  }
  if (schemes.every(([, { guards }]) => guards !== undefined))
    return [fail(NAME, 'it is on, and no loaded plugin knows any credential', HINT)]
  return await prepared(schemes)
}

const HINT = 'add a plugin that does ("@svc/plugin-auth-api-key", "@svc/plugin-auth-bearer") to "plugins"'

const open = (host: string) =>
  warn(
    NAME,
    `it is off, and everybody who reaches ${host} may use the server`,
    'set server.auth.enabled to true, or server.host to 127.0.0.1'
  )

const isLoopback = (host: string) => host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

async function prepare(name: string, scheme: AuthScheme, signal: AbortSignal): Promise<Finding> {
  try {
    await within(LIMIT_MS, async ending => scheme.prepare?.(systemUse(ending, 'doctor')), { signal })
    const { doubt } = scheme
    return doubt ? warn(NAME, `${name}: ${doubt.message}`, doubt.hint) : ok(NAME, `${name} is ready`)
  } catch (error) {
    const { hint } = Object(error) as Partial<SvcError>
    return fail(NAME, `${name}: ${messageOf(error)}`, hint)
  }
}
