import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { codeOf, type SvcError, asSvcError, type PluginReport } from '@svc/core'
import { isAbandoned, type Lock, readLock, setFolder } from '../../set.ts'
import { setHome, startProblems } from '@svc/cli/program'
import { verified } from '../../set/installed-layer.ts'
import { fail, type DoctorFinding, ok, warn, findingsText } from '../doctor/finding.ts'
import { sandboxFinding } from '../doctor/machine.ts'
import { visible, UNSET_HINT, unsetIn, unsetText } from '@svc/cli/command'
import { OUTDATED_STATE, reportsOf, type ServerPlugins } from './plugin-state.ts'

/** `svc plugins doctor`: resolves with 1 if a check fails. */
export async function diagnosePlugins({ json }: { readonly json: boolean }): Promise<number> {
  const home = setHome()
  const found = [...(await lockFindings(home)), leftovers(home), await npmFinding(), await sandboxFinding()]
  const findings = [...found, ...(isGood(found) ? await startFindings() : []), ...(await serverFindings())]
  const good = isGood(findings)
  process.stdout.write(`${json ? JSON.stringify({ ok: good, findings }, null, 2) : findingsText(findings)}\n`)
  return good ? 0 : 1
}

const isGood = (findings: readonly DoctorFinding[]) => findings.every(finding => finding.state !== 'fail')

/** Finds what only a start shows: clashing names, a setup that throws, a missing sandbox. */
async function startFindings(): Promise<DoctorFinding[]> {
  const problems = await startProblems()
  if (problems.length === 0) return [ok('start', 'a host starts with these plugins')]
  return problems.map(({ plugin, message, code, hint }) =>
    fail('start', visible(`${plugin === undefined ? '' : `${plugin}: `}${message} (${code})`), hint)
  )
}

async function lockFindings(home: string): Promise<DoctorFinding[]> {
  try {
    const lock = await readLock(home)
    const off = lock.plugins.filter(plugin => !plugin.enabled).length
    const count = `${lock.plugins.length} installed${off > 0 ? `, ${off} of them disabled` : ''}`
    return [
      (await isAbandoned(home)) ? warn('lock', `${count}; ${ABANDONED}`, ABANDONED_HINT) : ok('lock', count),
      ...(await fileFindings(home, lock)),
      ...variableFindings(lock),
      ...(await packageFindings(home, lock)),
    ]
  } catch (error) {
    const { code, message, hint } = error as SvcError
    if (code !== 'LOCK_INVALID') throw error
    return [fail('lock', `${message} (${code})`, hint)]
  }
}

/** The process of the trial start was killed. */
const ABANDONED = 'a later change was interrupted during its trial start, and is not in effect'
const ABANDONED_HINT = 'Repeat the change, and run svc reload if a running server has loaded it'

/** For enabled plugins. */
const variableFindings = ({ plugins }: Lock): DoctorFinding[] =>
  plugins.flatMap(({ name, enabled, permissions }) => {
    const unset = enabled ? unsetIn(permissions) : []
    return unset.length === 0 ? [] : [warn('variables', visible(`${name}: ${unsetText(unset)}`), UNSET_HINT)]
  })

async function fileFindings(home: string, lock: Lock): Promise<DoctorFinding[]> {
  if (lock.plugins.length === 0) return []
  const problems = await verified(home, lock)
  if (problems.length === 0) return [ok('files', 'they match the installed ones')]
  return problems.map(({ plugin, message, code, hint }) =>
    fail('files', `${plugin === undefined ? '' : `${plugin}: `}${message} (${code})`, hint)
  )
}

const run = promisify(execFile)
const NPM_MS = 60_000
const HINT = 'Run svc plugins update, or install a version that fits'

/** npm's problems of the installed packages: wrong ranges of peers, missing or extraneous packages. */
async function packageFindings(home: string, lock: Lock): Promise<DoctorFinding[]> {
  const cwd = setFolder(home, lock)
  if (cwd === undefined) return []
  const problems = await problemsIn(cwd)
  if (problems === undefined) return []
  return problems.length === 0
    ? [ok('packages', 'all dependencies are installed in a matching version')]
    : problems.map(text => warn('packages', text, HINT))
}

/** npm exits with 1 if it reports problems. Undefined if npm did not run. */
async function problemsIn(cwd: string): Promise<string[] | undefined> {
  const { stdout = '' } = (await run('npm', ['ls', '--all', '--json'], { cwd, timeout: NPM_MS, maxBuffer: 2 ** 26 }).catch(
    Object
  )) as {
    stdout?: string
  }
  if (stdout === '') return undefined
  const { problems = [] } = JSON.parse(stdout) as { problems?: string[] }
  return problems.filter(text => !OF_SVC.test(text)).map(text => text.replaceAll(cwd, '…'))
}

/** Packages that svc itself provides. */
const OF_SVC = /required by (\S*:)?@svc\/[\w-]+@/

/** Leftovers of interrupted changes. The former set is kept for workers that read it. */
function leftovers(home: string): DoctorFinding {
  const staged = namesIn(join(home, 'plugins', 'staging'))
  const sets = namesIn(join(home, 'plugins', 'sets'))
  if (staged.length === 0 && sets.length <= 2) return ok('leftovers', 'none')
  return warn('leftovers', 'a change was interrupted, or is running', 'The next change of plugins removes them')
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** npm 11.16 added an option that forbids requests to other addresses. */
function isHeld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 11 || (major === 11 && minor >= 16)
}
const LOOSE = 'requests an address that a dependency names before svc can reject it'

async function npmFinding(): Promise<DoctorFinding> {
  try {
    const version = (await run('npm', ['--version'], { timeout: NPM_MS })).stdout.trim()
    return isHeld(version) ? ok('npm', version) : warn('npm', `${version} ${LOOSE}`, 'Run npm install --global npm@11')
  } catch {
    return warn('npm', 'npm cannot be started', 'Install npm (it comes with Node.js): without it, only bundles can be installed')
  }
}

/** The state of plugins in running servers, which can differ from a fresh start. Empty if no server runs. */
async function serverFindings(): Promise<DoctorFinding[]> {
  try {
    return (await reportsOf(() => true)).flatMap(findingsOf)
  } catch (error) {
    const { message, code, hint } = asSvcError(error, 'FAILED')
    return [warn('server', visible(`svc cannot ask it: ${message} (${code})`), hint ?? 'Run svc status for details')]
  }
}

function findingsOf({ plugins, asOf }: ServerPlugins): DoctorFinding[] {
  const failures = plugins.flatMap(findingOf)
  const stale =
    asOf === undefined ? [] : [warn('server', `the state of isolated plugins is unknown since ${asOf}`, OUTDATED_STATE)]
  const found = [...failures, ...stale]
  return found.length === 0 ? [ok('server', 'all plugins run in the running server')] : found
}

function findingOf({ name, instance, state, error }: PluginReport): DoctorFinding[] {
  const who = visible(instance === undefined ? name : `${name} (${instance})`)
  if (state === 'quarantined')
    return [fail('server', `${who} is quarantined: its process crashed too often, or ended workers`, OUT_HINT)]
  if (state === 'restarting') return [warn('server', `${who} is being restarted: its process crashed`, ENDED)]
  if (state === 'running') return []
  const why = error === undefined ? '' : `: ${error.message} (${error.code})`
  return [fail('server', visible(`${who} has failed${why}`), error?.hint ?? 'Run svc reload to try again')]
}

const ENDED = 'read the log line "the process of an isolated plugin has ended"'
const OUT_HINT = `Run svc reload to restart it, or svc plugins disable; ${ENDED}`
