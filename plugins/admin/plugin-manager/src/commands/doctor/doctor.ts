import { type Plan, planHost, type SvcError, messageOf, type RunningHost, systemContext, withTimeout, codeOf } from '@svc/core'
import { Http, Selection, Store, type AuthScheme, AuthSchemes } from '@svc/core/contracts'
import { certificateFindings, homeFindings, nodeFinding, sandboxFinding, type Ssl } from './machine.ts'
import { fail, type DoctorFinding, ok, warn, findingsText } from './finding.ts'
import { clusterFindings } from './cluster-checks.ts'
import { partFindings, profileFindings } from './plugin-checks.ts'
import { problemsOf, UNSET_HINT, unsetIn, unsetText, visible } from '@svc/cli/command'
import { isCurated } from '../../plugin-states.ts'
import {
  abortOnInterrupt,
  findSettings,
  here,
  hostOptions,
  type ServeOptions,
  sourceNames,
  startInnerHost,
} from '@svc/cli/program'
import { isIP, connect } from 'node:net'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { findServers } from '@svc/runtime'

/** `svc doctor`: checks everything and prints the findings; resolves with the exit code, 1 if a check fails. */
export async function doctor(options: ServeOptions, json: boolean): Promise<number> {
  using interrupt = abortOnInterrupt()
  const findings = await examine(options, interrupt.signal)
  const good = findings.every(finding => finding.state !== 'fail')
  process.stdout.write(`${json ? JSON.stringify({ ok: good, findings }, null, 2) : findingsText(findings)}\n`)
  return good ? 0 : 1
}

async function examine(options: ServeOptions, signal: AbortSignal): Promise<DoctorFinding[]> {
  const place = here()
  const machine = [nodeFinding(), ...(await homeFindings(place.home))]
  const { plan, findings } = await configuration(options, place.home)
  const isSound = [...machine, ...findings].every(homeFinding => homeFinding.state !== 'fail')
  const met = isSound && plan ? await parts(plan, place.home, signal) : [SKIPPED, await sandboxFinding()]
  // only a started host knows the providers that profiles name
  const lost = met.some(part => part.name === 'profiles')
  return [
    ...machine,
    ...(plan ? variableFindings(plan) : []),
    ...findings.filter(finding => !lost || finding.name !== 'profiles'),
    ...met,
    ...(plan ? await surface(plan, place.home) : []),
  ]
}

/** Declared variables of plugins that do not come with svc, as `svc serve` logs them. Those of svc work without theirs. */
const variableFindings = ({ loaded }: Plan): DoctorFinding[] =>
  loaded.flatMap(({ name, found }) => {
    const unset = isCurated(name) ? [] : unsetIn(found.manifest.permissions ?? {})
    return unset.length === 0 ? [] : [warn('variables', visible(`${name}: ${unsetText(unset)}`), UNSET_HINT)]
  })

const SKIPPED = warn('plugins', 'svc did not check the store and the providers', 'Fix the failed checks above first')

/** All problems of the configuration and of the files that it names. */
async function configuration(options: ServeOptions, home: string): Promise<{ plan?: Plan; findings: DoctorFinding[] }> {
  try {
    const config = await findSettings(options)
    const plan = await planHost(hostOptions(config, home))
    return { plan, findings: [...configurationFindings(plan), ...plan.notes.map(noteOf)] }
  } catch (error) {
    return { findings: problemsOf(error).map(problem => problemOf('configuration', problem)) }
  }
}

function configurationFindings(plan: Plan): DoctorFinding[] {
  const profiles = providerOf(plan, Selection.name)
  const failures = plan.problems.map(problem => problemOf(isOf(problem, profiles) ? 'profiles' : 'configuration', problem))
  const good = (name: string, message: string) => (failures.some(failure => failure.name === name) ? [] : [ok(name, message)])
  const from = sourceNames(plan.config).join(', ') || 'defaults only'
  return [
    ...good('configuration', `${from}, ${plan.plannedPlugins.length + plan.failed.length} plugins`),
    ...(profiles === undefined ? [] : good('profiles', 'good')),
    ...failures,
  ]
}

const providerOf = ({ loaded }: Plan, service: string) => loaded.find(item => item.plugin.provides?.name === service)?.name
const isOf = (problem: SvcError, plugin: string | undefined) => plugin !== undefined && problem.plugin === plugin

function problemOf(name: string, { code, message, hint, where, plugin }: SvcError): DoctorFinding {
  const who = plugin === undefined ? '' : `${plugin}: `
  return { ...fail(name, `${who}${message} (${code})`, hint), ...(where === undefined ? {} : { where }) }
}

const noteOf = ({ message, where, hint = '' }: SvcError): DoctorFinding => ({
  ...warn('configuration', message, hint),
  ...(where === undefined ? {} : { where }),
})

/** Starts the plugins that do not listen, and runs their checks. */
async function parts(plan: Plan, home: string, signal: AbortSignal): Promise<DoctorFinding[]> {
  try {
    await using inner = await startInnerHost(plan.config, home, undefined, { kept: ['mcp.server', 'console'] })
    const failed = inner.host.report().plugins.filter(plugin => plugin.state === 'failed')
    const lost = failed.map(({ name, error }) =>
      warn('plugins', `${name} (optional) failed: ${error?.message}`, error?.hint ?? '')
    )
    const server = serverOf(plan)
    const who = server ? await authenticationFindings(inner.host, server, signal) : []
    const named = await profileFindings(inner.host, signal)
    const { name } = Object(plan.config.value.cluster) as { readonly name?: unknown }
    const nodes = await clusterFindings(inner.host, name, signal)
    return [
      ...named,
      ...(await partFindings(inner.host, signal)),
      ...nodes,
      ...who,
      ...lost,
      await sandboxFinding(inner.host, signal),
    ]
  } catch (error) {
    const failures = problemsOf(error).map(problem =>
      problemOf(isOf(problem, providerOf(plan, Store.name)) ? 'store' : 'plugins', problem)
    )
    return [...failures, await sandboxFinding()]
  }
}

interface Server {
  readonly host: string
  readonly port: number
  readonly ssl: Ssl
  readonly auth: { readonly enabled: boolean }
}

/** Its section, as its owner has checked it. */
function serverOf({ plannedPlugins }: Plan): Server | undefined {
  const planned = plannedPlugins.find(plannedPlugin => plannedPlugin.plugin.provides?.name === Http.name)
  return planned && planned.problems.length === 0 ? (planned.config as Server) : undefined
}

/** The checks for a server: its port and its certificate. */
async function surface(plan: Plan, home: string): Promise<DoctorFinding[]> {
  const server = serverOf(plan)
  return server ? [await portFinding(server.host, server.port, home), ...(await certificateFindings(server.ssl))] : []
}

const NAME = 'authentication'
const LIMIT_MS = 30_000

/**
 * Whether clients from outside need a credential, and whether each scheme can check one. Otherwise the server would not start.
 */
async function authenticationFindings(
  host: RunningHost,
  server: { readonly host: string; readonly auth: { readonly enabled: boolean } },
  signal: AbortSignal
): Promise<DoctorFinding[]> {
  const schemes = host.slot(AuthSchemes).entries()
  const prepared = (asked: typeof schemes) => Promise.all(asked.map(([name, scheme]) => prepare(name, scheme, signal)))
  if (!server.auth.enabled) {
    const off = isLoopback(server.host) ? ok(NAME, `off, and only this machine reaches ${server.host}`) : open(server.host)
    return [off, ...(await prepared(schemes.filter(([, { always }]) => always)))]
  }
  if (schemes.every(([, { guards }]) => guards !== undefined))
    return [fail(NAME, 'it is on, and no loaded plugin checks credentials', HINT)]
  return await prepared(schemes)
}

const HINT = 'Add "@svc/plugin-auth-api-key" or "@svc/plugin-auth-bearer" to "plugins"'

const open = (host: string) =>
  warn(
    NAME,
    `it is off, and everyone who reaches ${host} can use the server`,
    'Set server.auth.enabled to true, or server.host to 127.0.0.1'
  )

const isLoopback = (host: string) => host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

async function prepare(name: string, scheme: AuthScheme, signal: AbortSignal): Promise<DoctorFinding> {
  try {
    await withTimeout(LIMIT_MS, async ending => scheme.prepare?.(systemContext(ending, 'doctor')), { signal })
    const { doubt } = scheme
    return doubt ? warn(NAME, `${name}: ${doubt.message}`, doubt.hint) : ok(NAME, `${name} is ready`)
  } catch (error) {
    const { hint } = Object(error) as Partial<SvcError>
    return fail(NAME, `${name}: ${messageOf(error)}`, hint)
  }
}

const ANSWER_MS = 2_000
const ANY: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Whether the server could listen. It connects to the port, because nothing listens in this process. */
async function portFinding(host: string, port: number, home: string): Promise<DoctorFinding> {
  const place = `${host}:${port}`
  if (port === 0) return ok('port', 'any free port')
  const closed = port < (await firstFreeForAll()) && process.getuid?.() !== 0
  if (closed)
    return fail('port', `only root can listen on ${place}`, 'Use a higher port behind a proxy, or give node CAP_NET_BIND_SERVICE')
  const answer = await knock(ANY[host] ?? host, port)
  if (answer === 'ECONNREFUSED') return ok('port', `${place} is free`)
  if (answer !== 'open')
    return warn('port', `cannot check whether ${place} is free: ${answer}`, 'Set server.host to an address of this machine')
  const owner = await ownerOf(port, home)
  if (owner !== undefined) return ok('port', `the server of this svc home (process ${owner}) uses ${place}`)
  return fail('port', `another program uses ${place}`, 'Stop that program, or choose another port with --port or server.port')
}

/** `open`, or the reason why not. */
async function knock(host: string, port: number): Promise<string> {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(ANSWER_MS) })
    return 'open'
  } catch (error) {
    // a name with several addresses: all refuse
    const [first = error] = Object(error).errors ?? []
    return codeOf(first) ?? messageOf(first)
  } finally {
    socket.destroy()
  }
}

async function ownerOf(port: number, home: string): Promise<number | undefined> {
  const servers = await findServers(home).catch(() => [])
  for (const server of servers) server[Symbol.dispose]()
  return servers.find(server => server.info.port === port)?.info.pid
}

async function firstFreeForAll(): Promise<number> {
  const text = await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(() => '0')
  return Number.parseInt(text, 10)
}
