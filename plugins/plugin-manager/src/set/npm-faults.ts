import type { RunResult } from '@svc/child'
import type { SvcError } from '@svc/core'
import { dependencyStray, notFound, npmFailed, type NpmFault, plainWords } from './errors.ts'

const MOST_LINES = 8

const NETWORK: NpmFault = {
  reason: 'network',
  says: 'the registry could not be reached',
  hint: 'fix the network or npm config get registry; what npm has in its cache installs with --offline',
}
const DENIED: NpmFault = {
  reason: 'denied',
  says: 'the registry wants a login for this',
  hint: 'npm login, or fix the token in .npmrc',
}
const REGISTRY: NpmFault = {
  reason: 'registry',
  says: 'the registry failed',
  hint: 'try again later; what npm has in its cache installs with --offline',
}
const DISK: NpmFault = {
  reason: 'disk',
  says: 'npm could not write',
  hint: 'make room, and let who runs svc write to the svc home and to npm config get cache',
}

/** By npm's own code, `npm error code E500`. */
const FAULTS: Readonly<Record<string, NpmFault>> = {
  ENOTCACHED: {
    reason: 'not-cached',
    says: 'npm does not have all of it in its cache',
    hint: 'install it without --offline, or from a bundle (svc plugins pack)',
  },
  ERESOLVE: {
    reason: 'conflict',
    says: 'its dependencies do not go with what is installed',
    hint: 'install a version that was made for this svc and the other plugins: details say what conflicts',
  },
  EINTEGRITY: {
    reason: 'integrity',
    says: 'what came is not what the registry promised',
    hint: 'npm cache verify, then try again; do not install it if that stays',
  },
  EBADENGINE: { reason: 'engine', says: 'it was made for another Node.js', hint: 'install a version for this one' },
  EBADPLATFORM: { reason: 'platform', says: 'it was made for another system', hint: 'install a version for this one' },
  ENOSPC: DISK,
  EROFS: DISK,
  EACCES: DISK,
  EPERM: DISK,
}
const NETWORK_CODE =
  /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|EHOSTUNREACH|ENETUNREACH|EPIPE|EIDLETIMEOUT|.*CERT.*|SELF_SIGNED.*|UNABLE_TO_.*)$/
const OTHER: NpmFault = { reason: 'other', says: 'npm failed', hint: 'details have its own words' }

/** What a run of npm that failed means: PLUGIN_NOT_FOUND, PLUGIN_DEPENDENCY_STRAY, NPM_FAILED. */
export function npmFault({ stdout, stderr, stopped }: RunResult, limitMs: number, plugin: string | undefined): SvcError {
  const words = wordsIn(`${stderr.text}\n${stdout.text}`)
  if (stopped === 'timeout') return npmFailed(tooLong(limitMs), words, plugin)
  const code = /^npm (?:error|ERR!) code (\S+)/m.exec(stderr.text)?.[1] ?? ''
  if (code === 'E404') return notFound(missingIn(stderr.text) ?? plugin ?? '', 'package', words)
  if (code === 'ETARGET') return notFound(targetIn(stderr.text) ?? plugin ?? '', 'version', words)
  const stray = STRAY[code]
  if (stray !== undefined)
    return dependencyStray(plugin, `a package that it brings needs ${stray}, which is no package of the registry`)
  return npmFailed(faultOf(code), words, plugin)
}

/** npm was told to fetch none of these, and does not say of whom. */
const STRAY: Readonly<Record<string, string>> = {
  EALLOWGIT: 'a git repository',
  EALLOWREMOTE: 'a file from an address',
}

function faultOf(code: string): NpmFault {
  if (NETWORK_CODE.test(code)) return NETWORK
  if (/^E(401|403|NEEDAUTH|OTP)$/.test(code)) return DENIED
  if (/^E(5\d\d|429)$/.test(code)) return { ...REGISTRY, says: `the registry failed with ${code.slice(1)}` }
  return FAULTS[code] ?? OTHER
}

const tooLong = (limitMs: number): NpmFault => ({
  reason: 'timeout',
  says: `npm did not end within ${limitMs} ms`,
  hint: 'try again; a slow network may need more than one try, for npm keeps what came',
})

/** It may be a dependency that is missing. */
const missingIn = (said: string) =>
  /requested resource '(.+?)@[^']*'/.exec(said)?.[1] ?? /'(.+?)@[^']*' is not in this registry/.exec(said)?.[1]
const targetIn = (said: string) => /No matching version found for (\S+?)\.?$/m.exec(said)?.[1]

function wordsIn(said: string): string[] {
  const lines = said.split('\n').flatMap(line => /^npm (?:error|ERR!) (.+)$/.exec(line)?.[1]?.trim() ?? [])
  return lines
    .filter(line => !/complete log of this run|^\s*at /.test(line))
    .map(plainWords)
    .slice(0, MOST_LINES)
}
