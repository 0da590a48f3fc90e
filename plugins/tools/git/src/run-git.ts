import { type ChildProcess, spawn } from 'node:child_process'
import { codeOf } from '@svc/core'
import { gitFailed, gitMissing, gitTimeout } from './errors.ts'

/** Options of a git process. */
export interface GitRun {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Maximum bytes of output. Beyond that, git is terminated. */
  readonly most: number
  /** Standard input. */
  readonly input?: string | Buffer
}

export interface GitAnswer {
  readonly stdout: Buffer
  readonly stderr: string
  readonly truncated: boolean
  /** Absent if it was terminated. */
  readonly code?: number
}

const WORDS_BYTES = 8192
/** Time for git to remove its lock files. */
const GRACE_MS = 1000

/** Runs git and its children as a process group. Terminates the group if the signal aborts, the time is over, or there is enough output. */
export async function runGit(args: readonly string[], run: GitRun): Promise<GitAnswer> {
  run.signal.throwIfAborted()
  const child = spawn('git', [...args], {
    cwd: run.cwd,
    env: run.env,
    detached: true,
    stdio: [run.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  const late = AbortSignal.timeout(run.timeoutMs)
  const stop = AbortSignal.any([run.signal, late])
  const ended = endOf(child)
  const end = ender(child)
  stop.addEventListener('abort', end.now, { once: true })
  try {
    const out = gather(child.stdout!, run.most, end.now)
    const words = gather(child.stderr!, WORDS_BYTES, () => {})
    // a process that exits without reading must not crash svc
    child.stdin?.on('error', () => {}).end(run.input)
    const code = await ended
    run.signal.throwIfAborted()
    if (late.aborted) throw gitTimeout(run.timeoutMs)
    const { bytes, truncated } = out()
    return { stdout: bytes, truncated, stderr: words().bytes.toString(), ...(code === null ? {} : { code }) }
  } finally {
    stop.removeEventListener('abort', end.now)
    end.forget()
  }
}

function endOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('error', error =>
      reject(/^(ENOENT|EACCES)$/.test(codeOf(error) ?? '') ? gitMissing() : gitFailed(`cannot start git (${codeOf(error)})`))
    )
    child.on('close', resolve)
  })
}

/** Terminates the group with SIGTERM, so that git removes its lock files, then with SIGKILL. */
function ender(child: ChildProcess) {
  let timer: NodeJS.Timeout | undefined
  const kill = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal)
    } catch {
      // the process has already exited
    }
  }
  return {
    now: () => {
      if (timer) return
      kill('SIGTERM')
      timer = setTimeout(kill, GRACE_MS, 'SIGKILL')
    },
    forget: () => clearTimeout(timer),
  }
}

/** Collects at most `most` bytes of a stream. Calls `full` if there are more. */
function gather(stream: NodeJS.ReadableStream, most: number, full: () => void) {
  const kept: Buffer[] = []
  let size = 0
  stream.on('data', (chunk: Buffer) => {
    if (size < most) kept.push(chunk.subarray(0, most - size))
    size += chunk.length
    if (size > most) full()
  })
  return () => ({ bytes: Buffer.concat(kept), truncated: size > most })
}

/** A git setting by its full name. */
export type Setting = readonly [name: string, value: string]

// A repository can be untrusted, and its settings can name programs that git would run with our permissions. These values override each such key.
// Where a command has flags for the same purpose (`--no-ext-diff`, `--no-textconv`), they are set, too.
const SAFE: readonly Setting[] = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.pager', 'cat'],
  ['core.editor', 'false'],
  ['core.askPass', ''],
  ['core.sshCommand', 'false'],
  ['core.gitProxy', ''],
  ['credential.helper', ''],
  ['protocol.allow', 'never'],
  ['diff.external', ''],
  ['diff.orderFile', '/dev/null'],
  ['gpg.program', 'false'],
  ['gpg.ssh.program', 'false'],
  ['gpg.x509.program', 'false'],
  ['log.showSignature', 'false'],
  ['commit.gpgSign', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['safe.bareRepository', 'explicit'],
  // nested repositories have their own settings
  ['submodule.recurse', 'false'],
  ['diff.ignoreSubmodules', 'dirty'],
  ['diff.submodule', 'short'],
  ['status.submoduleSummary', 'false'],
  // parsed output must not depend on settings
  ['core.quotePath', 'false'],
  ['color.ui', 'false'],
  ['diff.noprefix', 'false'],
  ['diff.mnemonicPrefix', 'false'],
  ['diff.renames', 'true'],
  ['i18n.logOutputEncoding', 'UTF-8'],
]

/** Settings that disable a filter. Each of its keys identifies a filter. */
export const withoutFilter = (name: string): Setting[] => [
  [`filter.${name}.clean`, ''],
  [`filter.${name}.smudge`, ''],
  [`filter.${name}.process`, ''],
  [`filter.${name}.required`, 'false'],
]

/** The complete environment of a git command. It inherits nothing else. */
export function environment(ceilings: readonly string[], own: readonly Setting[], trusted: boolean): NodeJS.ProcessEnv {
  const settings = [...SAFE.filter(([name]) => !(trusted && name === 'core.hooksPath')), ...own]
  const { PATH, HOME, XDG_CONFIG_HOME } = process.env
  return {
    PATH,
    ...(HOME === undefined ? {} : { HOME }),
    ...(XDG_CONFIG_HOME === undefined ? {} : { XDG_CONFIG_HOME }),
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_NO_LAZY_FETCH: '1',
    // no protocol has this name, so all protocols are disabled
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_PAGER: 'cat',
    GIT_EDITOR: 'false',
    GIT_CEILING_DIRECTORIES: ceilings.join(':'),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([name, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, name],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ])
    ),
  }
}
