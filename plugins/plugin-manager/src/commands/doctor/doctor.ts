import { type Plan, planHost, type SvcError } from '@svc/core'
import { Http, Selection, Store } from '@svc/core/contracts'
import { authenticationFindings } from './authentication.ts'
import { certificateFindings, type Ssl } from './certificate.ts'
import { fail, type Finding, ok, warn } from './finding.ts'
import { findingsText } from './findings-text.ts'
import { homeFindings, nodeFinding } from './machine.ts'
import { partFindings } from './parts.ts'
import { portFinding } from './port.ts'
import { profileFindings } from './profiles.ts'
import { sandboxFinding } from './sandbox.ts'
import { problemsOf } from '@svc/cli/command'
import {
  abortOnInterrupt,
  findSettings,
  here,
  hostOptions,
  type ServeOptions,
  sourceNames,
  startInnerHost,
} from '@svc/cli/program'

/** `svc doctor`: looks at everything, prints what it found; resolves with the exit code, 1 when something fails. */
export async function doctor(options: ServeOptions, json: boolean): Promise<number> {
  using interrupt = abortOnInterrupt()
  const findings = await examine(options, interrupt.signal)
  const good = findings.every(one => one.state !== 'fail')
  process.stdout.write(`${json ? JSON.stringify({ ok: good, findings }, null, 2) : findingsText(findings)}\n`)
  return good ? 0 : 1
}

async function examine(options: ServeOptions, signal: AbortSignal): Promise<Finding[]> {
  const place = here()
  const machine = [nodeFinding(), ...(await homeFindings(place.home))]
  const { plan, findings } = await configuration(options, place.home)
  const isSound = [...machine, ...findings].every(one => one.state !== 'fail')
  const met = isSound && plan ? await parts(plan, place.home, signal) : [SKIPPED, await sandboxFinding()]
  // profiles that are good by themselves are not, where one names what only a started host shows not to be there
  const lost = met.some(one => one.name === 'profiles')
  return [
    ...machine,
    ...findings.filter(one => !lost || one.name !== 'profiles'),
    ...met,
    ...(plan ? await surface(plan, place.home) : []),
  ]
}

const SKIPPED = warn('plugins', 'store and providers were not looked at', 'fix what fails above first')

/** Every fault of the configuration and of what it names. */
async function configuration(options: ServeOptions, home: string): Promise<{ plan?: Plan; findings: Finding[] }> {
  try {
    const config = await findSettings(options)
    const plan = await planHost(hostOptions(config, home))
    return { plan, findings: [...configurationFindings(plan), ...plan.notes.map(noteOf)] }
  } catch (error) {
    return { findings: problemsOf(error).map(problem => problemOf('configuration', problem)) }
  }
}

function configurationFindings(plan: Plan): Finding[] {
  const profiles = providerOf(plan, Selection.name)
  const faults = plan.problems.map(problem => problemOf(isOf(problem, profiles) ? 'profiles' : 'configuration', problem))
  const good = (name: string, message: string) => (faults.some(one => one.name === name) ? [] : [ok(name, message)])
  const from = sourceNames(plan.config).join(', ') || 'defaults only'
  return [
    ...good('configuration', `${from}, ${plan.seats.length + plan.failed.length} plugins`),
    ...(profiles === undefined ? [] : good('profiles', 'good')),
    ...faults,
  ]
}

const providerOf = ({ loaded }: Plan, service: string) => loaded.find(one => one.plugin.provides?.name === service)?.name
const isOf = (problem: SvcError, plugin: string | undefined) => plugin !== undefined && problem.plugin === plugin

function problemOf(name: string, { code, message, hint, where, plugin }: SvcError): Finding {
  const who = plugin === undefined ? '' : `${plugin}: `
  return { ...fail(name, `${who}${message} (${code})`, hint), ...(where === undefined ? {} : { where }) }
}

const noteOf = ({ message, where, hint = '' }: SvcError): Finding => ({
  ...warn('configuration', message, hint),
  ...(where === undefined ? {} : { where }),
})

/** Starts the plugins, but for what would listen, and lets each look at its own. */
async function parts(plan: Plan, home: string, signal: AbortSignal): Promise<Finding[]> {
  try {
    await using inner = await startInnerHost(plan.config, home, undefined, ['mcp.server'])
    const failed = inner.host.report().plugins.filter(one => one.state === 'failed')
    const lost = failed.map(({ name, error }) =>
      warn('plugins', `${name} (optional) failed: ${error?.message}`, error?.hint ?? '')
    )
    const server = serverOf(plan)
    const who = server ? await authenticationFindings(inner.host, server, signal) : []
    const named = await profileFindings(inner.host, signal)
    return [...named, ...(await partFindings(inner.host, signal)), ...who, ...lost, await sandboxFinding(inner.host, signal)]
  } catch (error) {
    const faults = problemsOf(error).map(problem =>
      problemOf(isOf(problem, providerOf(plan, Store.name)) ? 'store' : 'plugins', problem)
    )
    return [...faults, await sandboxFinding()]
  }
}

interface Server {
  readonly host: string
  readonly port: number
  readonly ssl: Ssl
  readonly auth: { readonly enabled: boolean }
}

/** Its section, as the very plugin that owns it has checked it. */
function serverOf({ seats }: Plan): Server | undefined {
  const seat = seats.find(one => one.plugin.provides?.name === Http.name)
  return seat && seat.problems.length === 0 ? (seat.config as Server) : undefined
}

/** What only a server needs: its port and its certificate. */
async function surface(plan: Plan, home: string): Promise<Finding[]> {
  const server = serverOf(plan)
  return server ? [await portFinding(server.host, server.port, home), ...(await certificateFindings(server.ssl))] : []
}
