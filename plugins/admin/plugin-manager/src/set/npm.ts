import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { asSvcError, codeOf, type SvcError } from '@svc/core'
import { runChild, type RunResult } from '@svc/worker-pool/processes'
import type { FoundPlugin, SetOptions } from './change-types.ts'
import { dependencyStray, notFound, npmFailed, type NpmFailure, npmMissing, plainWords, searchFailed } from './errors.ts'

const LIMIT_MS = 300_000
/** Limit of the retained output: npm writes a lot about a large set. */
const MOST_BYTES = 16 * 1024 * 1024

export interface NpmRun extends Pick<SetOptions, 'signal' | 'npm' | 'limitMs'> {
  /** Its working folder. It has a package.json, so that npm looks no further up. */
  readonly cwd: string
  readonly offline?: boolean
  /** The plugin to name in an error. */
  readonly plugin?: string
  /** It runs third-party code, so it gets only the variables of a build. */
  readonly runsScripts?: boolean
}

/** Settings that svc relies on, whatever .npmrc says, and limits for an unreachable registry. */
const ALWAYS = [
  '--global=false',
  '--package-lock=true',
  '--install-strategy=hoisted',
  '--install-links=false',
  // tarballs and the core of the set are files and a folder; svc checks npm's lock for others
  '--allow-file=all',
  '--allow-directory=all',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--fetch-retries=1',
  '--fetch-retry-mintimeout=200',
  '--fetch-retry-maxtimeout=2000',
]

/**
 * Runs npm and returns its output. Install scripts run only if the run is for them. Throws NPM_MISSING, NPM_FAILED,
 * PLUGIN_NOT_FOUND.
 */
export async function runNpm(args: readonly string[], run: NpmRun): Promise<string> {
  const { cwd, signal, offline = false, runsScripts = false, limitMs = LIMIT_MS } = run
  await mkdir(cwd, { recursive: true })
  const [file, ...first] = programOf(run.npm)
  const flags = [...ALWAYS, `--ignore-scripts=${!runsScripts}`, ...(offline ? ['--offline'] : [])]
  const [verb, ...rest] = args
  const result = await runChild({
    file,
    args: [...first, verb!, `--prefix=${cwd}`, ...flags, ...rest],
    env: runsScripts ? buildEnv() : npmEnv(),
    cwd,
    timeoutMs: limitMs,
    most: MOST_BYTES,
    floodBytes: 4 * MOST_BYTES,
    ...(signal ? { signal } : {}),
  }).catch(notRun)
  return wordsOf(result, run, limitMs)
}

function notRun(error: unknown): never {
  throw codeOf(error) === 'CHILD_NOT_STARTED' ? npmMissing(error) : error
}

function wordsOf(result: RunResult, { plugin }: NpmRun, limitMs: number): string {
  if (result.code === 0 && result.stopped === undefined) return result.stdout.text
  throw npmError(result, limitMs, plugin)
}

/** Ignores another package manager that started this process. */
function programOf(npm: string | undefined): [file: string, ...args: string[]] {
  if (npm !== undefined) return [npm]
  const { npm_execpath } = process.env
  return npm_execpath && basename(npm_execpath) === 'npm-cli.js' ? [process.execPath, npm_execpath] : ['npm']
}

/** Settings for npm that a user can pass in variables. All others come from the `npm run` that started this process. */
const NPM_SETTINGS =
  /^npm_config_(registry|userconfig|globalconfig|cache|ca|cafile|cert|key|proxy|https_proxy|noproxy|strict_ssl|@.*|\/\/.*|_.*)$/i
/** Variables that change npm's Node, and settings of svc, are not for npm. */
const NOT_PASSED = /^(npm_|NODE_OPTIONS$|NODE_PATH$|SVC_|INIT_CWD$)/i

const npmEnv = () => variables(name => NPM_SETTINGS.test(name) || !NOT_PASSED.test(name))

const BUILD = /^(PATH|HOME|TMPDIR|TEMP|TMP|LANG|LC_.*|USER|LOGNAME|SHELL|CC|CXX|CFLAGS|CXXFLAGS|LDFLAGS|PYTHON|SystemRoot)$/

const buildEnv = () => variables(name => BUILD.test(name))

const variables = (isPassed: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value !== undefined && isPassed(name) ? [[name, value]] : []))
  )

const MOST_LINES = 8

const NETWORK: NpmFailure = {
  reason: 'network',
  says: 'npm cannot reach the registry',
  hint: "Fix the network or npm config get registry; --offline installs from npm's cache",
}
const DENIED: NpmFailure = {
  reason: 'denied',
  says: 'the registry requires a login',
  hint: 'Run npm login, or fix the token in .npmrc',
}
const REGISTRY: NpmFailure = {
  reason: 'registry',
  says: 'the registry failed',
  hint: "Try again later; --offline installs from npm's cache",
}
const DISK: NpmFailure = {
  reason: 'disk',
  says: 'npm cannot write',
  hint: 'Free disk space, and give the user of svc write access to the svc home and to npm config get cache',
}

/** For npm's own code, `npm error code E500`. */
const FAILURES: Readonly<Record<string, NpmFailure>> = {
  ENOTCACHED: {
    reason: 'not-cached',
    says: "npm's cache does not contain all of it",
    hint: 'Install it without --offline, or from a bundle (svc plugins pack)',
  },
  ERESOLVE: {
    reason: 'conflict',
    says: 'its dependencies conflict with the installed plugins',
    hint: 'Install a version for this svc and the other plugins; details name the conflict',
  },
  EINTEGRITY: {
    reason: 'integrity',
    says: "the downloaded files do not match the registry's checksums",
    hint: 'Run npm cache verify and try again; do not install it if the error persists',
  },
  EBADENGINE: { reason: 'engine', says: 'it needs another Node.js', hint: 'Install a version for this Node.js' },
  EBADPLATFORM: { reason: 'platform', says: 'it needs another system', hint: 'Install a version for this system' },
  ENOSPC: DISK,
  EROFS: DISK,
  EACCES: DISK,
  EPERM: DISK,
}
const NETWORK_CODE =
  /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|EHOSTUNREACH|ENETUNREACH|EPIPE|EIDLETIMEOUT|.*CERT.*|SELF_SIGNED.*|UNABLE_TO_.*)$/
const OTHER: NpmFailure = { reason: 'other', says: 'npm failed', hint: "Read npm's output in the details" }

/** Converts a failed run of npm into PLUGIN_NOT_FOUND, PLUGIN_DEPENDENCY_STRAY or NPM_FAILED. */
function npmError({ stdout, stderr, stopped }: RunResult, limitMs: number, plugin: string | undefined): SvcError {
  const words = wordsIn(`${stderr.text}\n${stdout.text}`)
  if (stopped === 'timeout') return npmFailed(tooLong(limitMs), words, plugin)
  const code = /^npm (?:error|ERR!) code (\S+)/m.exec(stderr.text)?.[1] ?? ''
  if (code === 'E404') return notFound(missingIn(stderr.text) ?? plugin ?? '', 'package', words)
  if (code === 'ETARGET') return notFound(targetIn(stderr.text) ?? plugin ?? '', 'version', words)
  const stray = STRAY[code]
  if (stray !== undefined)
    return dependencyStray(plugin, `one of its packages needs ${stray}, which is not a package of the registry`)
  return npmFailed(failureOf(code), words, plugin)
}

/** npm runs with these kinds disabled, and does not name the package. */
const STRAY: Readonly<Record<string, string>> = {
  EALLOWGIT: 'a git repository',
  EALLOWREMOTE: 'a file from an address',
}

function failureOf(code: string): NpmFailure {
  if (NETWORK_CODE.test(code)) return NETWORK
  if (/^E(401|403|NEEDAUTH|OTP)$/.test(code)) return DENIED
  if (/^E(5\d\d|429)$/.test(code)) return { ...REGISTRY, says: `the registry failed with ${code.slice(1)}` }
  return FAILURES[code] ?? OTHER
}

const tooLong = (limitMs: number): NpmFailure => ({
  reason: 'timeout',
  says: `npm did not end within ${limitMs} ms`,
  hint: 'Try again: npm keeps the downloaded files, so a slow network may need several tries',
})

/** A dependency can be missing, too. */
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

const KEYWORD = 'svc-plugin'

/** A result of a registry, which may lack keys. */
interface SearchResult {
  readonly name?: string
  readonly version?: string
  readonly 'dist-tags'?: { readonly latest?: string }
  readonly description?: string
  readonly keywords?: readonly string[]
  readonly date?: string
  readonly time?: { readonly modified?: string }
}

/**
 * Searches the configured registry for packages with the keyword `svc-plugin` and these words. Throws PLUGIN_SEARCH_FAILED if
 * it supports no search, NPM_MISSING, NPM_FAILED.
 */
export async function searchPlugins(
  text: string,
  options: Pick<SetOptions, 'signal' | 'npm' | 'limitMs'> = {}
): Promise<FoundPlugin[]> {
  const cwd = await mkdtemp(join(tmpdir(), 'svc-search-'))
  const words = text.split(/\s+/).filter(Boolean)
  const ask = async (keyword: string) => foundIn(await runNpm(['search', '--json', '--', keyword, ...words], { ...options, cwd }))
  try {
    const found = await ask(`keywords:${KEYWORD}`)
    // not every registry supports this query
    return found.length > 0 ? found : await ask(KEYWORD)
  } catch (error) {
    throw isOfSearch(error) ? searchFailed(asSvcError(error, 'NPM_FAILED')) : error
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

/** An unreachable registry and a missing login keep their own errors. */
function isOfSearch(error: unknown): boolean {
  const { code, details } = asSvcError(error, 'FAILED')
  return code === 'PLUGIN_NOT_FOUND' || (code === 'NPM_FAILED' && ['registry', 'other'].includes(String(details.reason)))
}

const foundIn = (answer: string): FoundPlugin[] =>
  (JSON.parse(answer) as SearchResult[])
    .filter(item => item.keywords?.includes(KEYWORD) && item.name !== undefined)
    .map(foundPlugin)

const foundPlugin = ({ name, version, description, date, time, 'dist-tags': tags }: SearchResult): FoundPlugin => ({
  name: name!,
  version: version ?? tags?.latest ?? '',
  description: description ?? '',
  date: date ?? time?.modified ?? '',
})
