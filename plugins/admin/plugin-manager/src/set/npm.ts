import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { asSvcError, codeOf, type SvcError } from '@svc/core'
import { runChild, type RunResult } from '@svc/worker-pool/processes'
import type { FoundPlugin, SetOptions } from './change-types.ts'
import { dependencyStray, notFound, npmFailed, type NpmFault, npmMissing, plainWords, searchFailed } from './errors.ts'

const LIMIT_MS = 300_000
/** Limit of the output that is kept: npm writes much about a big set. */
const MOST_BYTES = 16 * 1024 * 1024

export interface NpmRun extends Pick<SetOptions, 'signal' | 'npm' | 'limitMs'> {
  /** Where it runs: with a package.json of its own, so that npm looks no further up. */
  readonly cwd: string
  readonly offline?: boolean
  /** The plugin that it is about, for an error. */
  readonly plugin?: string
  /** It runs a stranger's code: then it gets no variable but what a build needs. */
  readonly runsScripts?: boolean
}

/** What a person's .npmrc may say otherwise, and what is counted on here; and limits: a registry that is down would be waited for longer than anybody waits. */
const ALWAYS = [
  '--global=false',
  '--package-lock=true',
  '--install-strategy=hoisted',
  '--install-links=false',
  // the set's own tarballs and the core are files and a folder; what else is one is refused by npm's lock
  '--allow-file=all',
  '--allow-directory=all',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--fetch-retries=1',
  '--fetch-retry-mintimeout=200',
  '--fetch-retry-maxtimeout=2000',
]

/** Runs npm to its end; returns what it wrote. Install scripts never run, except where the run is for them. Throws NPM_MISSING, NPM_FAILED, PLUGIN_NOT_FOUND. */
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
  throw npmFault(result, limitMs, plugin)
}

/** Another package manager may have started this process: its program is no npm. */
function programOf(npm: string | undefined): [file: string, ...args: string[]] {
  if (npm !== undefined) return [npm]
  const { npm_execpath } = process.env
  return npm_execpath && basename(npm_execpath) === 'npm-cli.js' ? [process.execPath, npm_execpath] : ['npm']
}

/** Settings that a person may give npm by its variables; the others are of the `npm run` that started this process, and of the folder that it ran in. */
const NPM_SETTINGS =
  /^npm_config_(registry|userconfig|globalconfig|cache|ca|cafile|cert|key|proxy|https_proxy|noproxy|strict_ssl|@.*|\/\/.*|_.*)$/i
/** What would change the Node that npm runs on, and settings of svc: npm has no business with these. */
const NOT_PASSED = /^(npm_|NODE_OPTIONS$|NODE_PATH$|SVC_|INIT_CWD$)/i

const npmEnv = () => variables(name => NPM_SETTINGS.test(name) || !NOT_PASSED.test(name))

const BUILD = /^(PATH|HOME|TMPDIR|TEMP|TMP|LANG|LC_.*|USER|LOGNAME|SHELL|CC|CXX|CFLAGS|CXXFLAGS|LDFLAGS|PYTHON|SystemRoot)$/

const buildEnv = () => variables(name => BUILD.test(name))

const variables = (isPassed: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value !== undefined && isPassed(name) ? [[name, value]] : []))
  )

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
function npmFault({ stdout, stderr, stopped }: RunResult, limitMs: number, plugin: string | undefined): SvcError {
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

/** npm runs with these kinds disabled, and does not name the package. */
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

const KEYWORD = 'svc-plugin'

/** As registries answer: not all of them have each key. */
interface SearchResult {
  readonly name?: string
  readonly version?: string
  readonly 'dist-tags'?: { readonly latest?: string }
  readonly description?: string
  readonly keywords?: readonly string[]
  readonly date?: string
  readonly time?: { readonly modified?: string }
}

/** Asks the registry of npm's configuration for packages with the keyword `svc-plugin` that have these words. Throws PLUGIN_SEARCH_FAILED where it knows no search, NPM_MISSING, NPM_FAILED. */
export async function searchPlugins(
  text: string,
  options: Pick<SetOptions, 'signal' | 'npm' | 'limitMs'> = {}
): Promise<FoundPlugin[]> {
  const cwd = await mkdtemp(join(tmpdir(), 'svc-search-'))
  const words = text.split(/\s+/).filter(Boolean)
  const ask = async (keyword: string) => foundIn(await runNpm(['search', '--json', '--', keyword, ...words], { ...options, cwd }))
  try {
    const found = await ask(`keywords:${KEYWORD}`)
    // not every registry knows this way to ask
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
  (JSON.parse(answer) as SearchResult[]).filter(one => one.keywords?.includes(KEYWORD) && one.name !== undefined).map(foundPlugin)

const foundPlugin = ({ name, version, description, date, time, 'dist-tags': tags }: SearchResult): FoundPlugin => ({
  name: name!,
  version: version ?? tags?.latest ?? '',
  description: description ?? '',
  date: date ?? time?.modified ?? '',
})
