import { messageOf, nearest, redactData, redactText, type RunningHost, systemContext, withTimeout } from '@svc/core'
import { shownPath } from '@svc/core/config'
import { type Check, type CheckReport, Checks, type Profile, Providers, Selection } from '@svc/core/contracts'
import { fail, type DoctorFinding, ok, freeSpace, warn } from './finding.ts'

const LIMIT_MS = 120_000
/** Names for checks that `/health` calls differently. */
const WORDS: Readonly<Record<string, string>> = { database: 'store' }

/** Runs the checks of all plugins of a host, as thoroughly as each can. */
export async function partFindings(host: RunningHost, signal: AbortSignal): Promise<DoctorFinding[]> {
  const checks = host.slot(Checks).entries()
  const found = await Promise.all(checks.map(async ([name, check]) => describe(name, await look(check, signal))))
  return found.flat()
}

async function look(check: Check, signal: AbortSignal): Promise<CheckReport> {
  const work = (ending: AbortSignal) => {
    const ctx = systemContext(ending, 'doctor')
    return check.examine ? check.examine(ctx) : check.probe(ctx)
  }
  try {
    // wrapped text is not recognized later
    return redactData(await withTimeout(LIMIT_MS, work, { signal }))
  } catch (error) {
    return { status: 'unhealthy', reason: redactText(messageOf(error)) }
  }
}

function describe(check: string, report: CheckReport): DoctorFinding[] {
  const { status, detail = {} } = report
  if (check === 'providers') return providers(report)
  const name = WORDS[check] ?? check
  const free = typeof detail.free_bytes === 'number' ? freeSpace(name, detail.free_bytes) : undefined
  const text = [...wordsOf(detail), ...(free ? [free.text] : [])].join(', ')
  const main =
    status === 'healthy'
      ? ok(name, text || 'works')
      : status === 'degraded'
        ? warn(name, reasonOf(report, 'works only partly'), hintFor(check, report))
        : fail(name, reasonOf(report, 'does not work'), hintFor(check, report))
  return [main, ...(free?.finding ? [free.finding] : [])]
}

const reasonOf = ({ reason, code }: CheckReport, otherwise: string) =>
  code === undefined ? (reason ?? otherwise) : `${reason ?? otherwise} (${code})`
const hintFor = (check: string, { hint }: CheckReport) => hint ?? (check === 'database' ? STORE_HINT : HINT)
const HINT = 'Read the log of the server (svc serve --debug)'
const STORE_HINT = 'Stop the server and restore a backup (svc store restore), or end the program that holds the file'

function wordsOf({ path, spaces, records, entries, kind, durable, scope, role }: NonNullable<CheckReport['detail']>): string[] {
  return [
    ...(typeof path === 'string' ? [shownPath(path)] : []),
    ...(typeof kind === 'string' ? [kind] : []),
    ...(scope === 'process' ? ['each process has its own data'] : scope === 'cluster' ? ['shared by the cluster'] : []),
    ...(role === 'replica' ? ['accepts no writes'] : []),
    ...(durable === false ? ['data is lost at the end of the process'] : []),
    ...(Array.isArray(spaces) ? ['whole', ...spaces.map(schemaOf)] : []),
    ...(typeof records === 'number' ? [`${records} records`] : []),
    ...(typeof entries === 'number' ? [`${entries} log entries`] : []),
  ]
}

/** `conversations in schema version 1`: a space and the version of its schema. */
function schemaOf(space: unknown): string {
  const { name, version } = Object(space) as { name?: string; version?: number }
  return `${name} in schema version ${version}`
}

function providers({ status, reason, detail = {} }: CheckReport): DoctorFinding[] {
  const all = Object.entries(detail).map(([name, value]) => {
    const { healthy, error } = Object(value) as { healthy?: boolean; error?: string }
    if (healthy) return ok(`provider ${name}`, 'answers')
    return fail(
      `provider ${name}`,
      error ?? 'does not answer',
      `Check address and key in providers.${name}, and whether its server runs`
    )
  })
  if (all.length > 0) return all
  return [
    status === 'healthy'
      ? ok('providers', 'answer')
      : fail('providers', reason ?? 'do not answer', 'Configure one under "providers"'),
  ]
}

const NAME = 'profiles'

/** Profiles and fallbacks that name an unknown provider. Fails if the active profile could answer no chat. */
export async function profileFindings(host: RunningHost, signal: AbortSignal): Promise<DoctorFinding[]> {
  if (!host.report().plugins.some(plugin => plugin.provides === Selection.name && plugin.state === 'running')) return []
  const { profiles, active } = await host.service(Selection).profiles(systemContext(signal, 'doctor'))
  const known = host.slot(Providers).names()
  return profiles.flatMap(profile => lostIn(profile, profile.name === active, known))
}

function lostIn({ name, provider, fallback = [] }: Profile, isActive: boolean, known: readonly string[]): DoctorFinding[] {
  const isLost = (text: string) => !known.includes(text)
  const spare = fallback.map(item => item.provider)
  const lost = [...new Set(spare.filter(isLost))].map(item =>
    warn(NAME, unknownProvider(`fallback of "${name}"`, item), hintOf(item, known))
  )
  if (provider === undefined || !isLost(provider)) return lost
  const [message, hint] = [unknownProvider(`profile "${name}"`, provider), hintOf(provider, known)]
  // a known fallback answers in its place
  const isDeaf = isActive && spare.every(isLost)
  return [isDeaf ? fail(NAME, `${message}, so no chat can be answered`, hint) : warn(NAME, message, hint), ...lost]
}

const unknownProvider = (who: string, provider: string) => `${who} names the provider "${provider}", which does not exist`

function hintOf(provider: string, known: readonly string[]): string {
  const near = nearest(provider, known)
  const names = near === undefined ? `there are: ${known.join(', ') || 'none'}` : `did you mean "${near}"?`
  return `${names}; fix the name in the profiles, or configure it: providers: { ${provider}: … }`
}
