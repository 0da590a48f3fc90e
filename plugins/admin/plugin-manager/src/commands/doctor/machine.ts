import { execFile } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { access, constants, readFile, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { codeOf, messageOf, type RunningHost, systemContext, withTimeout } from '@svc/core'
import { type LimitHolder, ProcessSandbox, type SandboxAbility } from '@svc/core/contracts'
import { fail, type DoctorFinding, ok, freeSpace, warn } from './finding.ts'

const NEEDED = 24

/** Checks the version of Node. */
export function nodeFinding(version: string = process.versions.node): DoctorFinding {
  if (Number.parseInt(version, 10) >= NEEDED) return ok('node', version)
  return fail(
    'node',
    `${version} is too old: svc needs ${NEEDED}`,
    `Install Node ${NEEDED}, or start svc with npm, which brings its own`
  )
}

/** Checks the svc home: exists or can be created, belongs to this user alone, is writable, has free space. */
export async function homeFindings(home: string): Promise<DoctorFinding[]> {
  try {
    const found = await stat(home)
    if (!found.isDirectory()) return [fail('home', `${home} is not a folder`, 'Remove it, or set SVC_HOME to a folder')]
    await access(home, constants.W_OK | constants.X_OK)
    const left = freeSpace('home', await freeBytes(home))
    return [
      ok('home', `${home}, ${left.text}`),
      ...(left.finding ? [left.finding] : []),
      ...(found.mode & 0o077 ? [warn('home', `other users can read it (mode ${modeOf(found.mode)})`, `chmod 700 ${home}`)] : []),
      ...(found.uid === process.getuid?.()
        ? []
        : [warn('home', `it belongs to user ${found.uid}`, `Run svc as that user, or chown -R to the user of svc`)]),
    ]
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [await missingHome(home)]
    return [
      fail(
        'home',
        `svc cannot use ${home}: ${messageOf(error)}`,
        'Give the user of svc the right to write there, or set SVC_HOME'
      ),
    ]
  }
}

const modeOf = (mode: number) => (mode & 0o777).toString(8).padStart(4, '0')

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** A first start creates it if it can. */
async function missingHome(home: string): Promise<DoctorFinding> {
  try {
    await access(await existing(home), constants.W_OK)
    return ok('home', `${home} does not exist yet; the first start creates it`)
  } catch (error) {
    return fail('home', `svc cannot create ${home}: ${messageOf(error)}`, 'Set SVC_HOME to a folder that svc can create')
  }
}

async function existing(path: string): Promise<string> {
  const above = dirname(path)
  return above === path || (await stat(above).catch(() => undefined)) ? above : existing(above)
}

/** The checked keys of the section `server.ssl`. */
export interface Ssl {
  readonly enabled: boolean
  readonly cert?: string
  readonly key?: string
}

const SOON_DAYS = 21
const DAY_MS = 86_400_000
const TLS = 'tls'
const HINT = 'Set server.ssl.cert and server.ssl.key to PEM files, the key without a password'

const UNUSED = 'it is off, although server.ssl names a certificate or a key: others can read the traffic'

/**
 * Checks certificate and key: they exist, match and are valid, and only the owner can read the key. No finding if TLS is off
 * and neither is configured.
 */
export async function certificateFindings({ enabled, cert, key }: Ssl): Promise<DoctorFinding[]> {
  if (!enabled) return cert === undefined && key === undefined ? [] : [warn(TLS, UNUSED, 'Set server.ssl.enabled to true')]
  if (cert === undefined || key === undefined) return [fail(TLS, 'server.ssl needs both cert and key', HINT)]
  try {
    const leaf = new X509Certificate(await readFile(cert))
    const pair = leaf.checkPrivateKey(createPrivateKey(await readFile(key)))
    if (!pair) return [fail(TLS, `${key} is not the key of ${cert}`, HINT)]
    const { mode } = await stat(key)
    return [validity(leaf), ...(mode & 0o007 ? [warn(TLS, `all users of this machine can read ${key}`, `chmod 600 ${key}`)] : [])]
  } catch (error) {
    return [fail(TLS, messageOf(error), HINT)]
  }
}

function validity({
  validFromDate,
  validToDate,
  validTo,
  validFrom,
  subject,
  subjectAltName = subject,
}: X509Certificate): DoctorFinding {
  const renew = 'Renew the certificate; svc loads changed files without a restart'
  const days = Math.floor((validToDate.getTime() - Date.now()) / DAY_MS)
  if (validFromDate.getTime() > Date.now())
    return fail(TLS, `the certificate is valid only from ${validFrom}`, 'Set the clock, or wait')
  if (days < 0) return fail(TLS, `the certificate expired on ${validTo}`, renew)
  if (days < SOON_DAYS) return warn(TLS, `the certificate expires in ${days} days, on ${validTo}`, renew)
  return ok(TLS, `${subjectAltName.replaceAll('\n', ' ')}, valid for ${days} days`)
}

const SANDBOX = 'sandbox'
const LOST = 'svc will refuse everything that needs the process sandbox (isolated plugins, run_command, sandboxed stdio servers)'
const LIMIT_MS = 60_000

/** Tries which limits the process sandbox can enforce on this machine. Never fails, because the server runs without it. */
export async function sandboxFinding(host?: RunningHost, signal?: AbortSignal): Promise<DoctorFinding> {
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
    return warn(SANDBOX, `cannot probe the process sandbox: ${messageOf(error)}`, 'Run `svc doctor --debug` and read its log')
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
  by === null ? `svc cannot limit ${what}` : `${what} held by ${HOLDERS[by]}`

function findingOf({ ready, bubblewrap, memory, pids, reason = '', hint = '' }: SandboxAbility): DoctorFinding {
  if (!ready) return warn(SANDBOX, `${reason}: ${LOST}`, hint)
  const message = `bubblewrap ${bubblewrap} works; ${held('memory', memory)}, ${held('processes', pids)}`
  // Every sandbox needs a limit of memory.
  return memory === null ? warn(SANDBOX, `${message}: ${LOST}`, hint) : ok(SANDBOX, message)
}

const run = promisify(execFile)
const TRIAL_MS = 5_000
const TRIAL = ['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true']

/** Tries bubblewrap directly if no plugin provides the sandbox. */
async function trial(): Promise<DoctorFinding> {
  try {
    const { stdout } = await run('bwrap', ['--version'], { timeout: TRIAL_MS })
    await run('bwrap', TRIAL, { timeout: TRIAL_MS })
    return ok(SANDBOX, `${stdout.trim()} works; its limits were not tried`)
  } catch (error) {
    const { stderr } = Object(error) as { stderr?: string }
    const why =
      codeOf(error) === 'ENOENT'
        ? 'bubblewrap is not installed'
        : `bubblewrap does not work (${(stderr || messageOf(error)).trim()})`
    return warn(SANDBOX, `${why}: ${LOST}`, 'Install bubblewrap, fix the reported error, and run svc doctor again')
  }
}
