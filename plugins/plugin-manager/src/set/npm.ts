import { mkdir } from 'node:fs/promises'
import { basename } from 'node:path'
import { runChild, type RunResult } from '@svc/child'
import { codeOf } from '@svc/core'
import type { SetOptions } from './change-types.ts'
import { npmMissing } from './errors.ts'
import { npmFault } from './npm-faults.ts'

const LIMIT_MS = 300_000
/** What npm says of a big set is long; of more nobody reads. */
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
