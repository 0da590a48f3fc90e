import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { codeOf, messageOf, type RunningHost, systemContext, withTimeout } from '@svc/core'
import { type LimitHolder, ProcessSandbox, type SandboxAbility } from '@svc/core/contracts'
import { type Finding, ok, warn } from './finding.ts'

const NAME = 'sandbox'
const LOST = 'what needs the process sandbox (isolated plugins, run_command, sandboxed stdio servers) will be refused'
const LIMIT_MS = 60_000

/** What the process sandbox can hold on this machine: known by doing it. Never a failure, for the server runs without. */
export async function sandboxFinding(host?: RunningHost, signal?: AbortSignal): Promise<Finding> {
  const sandbox = host && providedBy(host)
  if (!sandbox) return trial()
  try {
    const ability = await withTimeout(
      LIMIT_MS,
      ending => sandbox.probe(systemContext(ending, 'doctor')),
      signal ? { signal } : {}
    )
    return findingOf(ability)
  } catch (error) {
    return warn(NAME, `cannot probe the process sandbox: ${messageOf(error)}`, 'Run `svc doctor --debug` and read its log')
  }
}

function providedBy(host: RunningHost): ProcessSandbox | undefined {
  try {
    return host.service(ProcessSandbox)
  } catch (error) {
    if (codeOf(error) === 'SERVICE_MISSING') return undefined
    throw error
  }
}

const HOLDERS: Readonly<Record<LimitHolder, string>> = {
  cgroup2: 'control groups',
  cgroup1: 'control groups (version 1)',
  systemd: 'scopes of systemd',
  rlimit: 'the limits of each single process',
}
const held = (what: string, by: LimitHolder | null) =>
  by === null ? `no limit of ${what} can be held` : `${what} held by ${HOLDERS[by]}`

function findingOf({ ready, bubblewrap, memory, pids, reason = '', hint = '' }: SandboxAbility): Finding {
  if (!ready) return warn(NAME, `${reason}: ${LOST}`, hint)
  const message = `bubblewrap ${bubblewrap} works; ${held('memory', memory)}, ${held('processes', pids)}`
  // Every sandbox asks for a limit of memory.
  return memory === null ? warn(NAME, `${message}: ${LOST}`, hint) : ok(NAME, message)
}

const run = promisify(execFile)
const TRIAL_MS = 5_000
const TRIAL = ['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true']

/** Where no plugin runs that could say it: whether bubblewrap works at all. */
async function trial(): Promise<Finding> {
  try {
    const { stdout } = await run('bwrap', ['--version'], { timeout: TRIAL_MS })
    await run('bwrap', TRIAL, { timeout: TRIAL_MS })
    return ok(NAME, `${stdout.trim()} works; which limits it holds was not tried`)
  } catch (error) {
    const { stderr } = Object(error) as { stderr?: string }
    const why =
      codeOf(error) === 'ENOENT'
        ? 'bubblewrap is not installed'
        : `bubblewrap does not work (${(stderr || messageOf(error)).trim()})`
    return warn(NAME, `${why}: ${LOST}`, 'install bubblewrap, fix what fails above, and run svc doctor again')
  }
}
