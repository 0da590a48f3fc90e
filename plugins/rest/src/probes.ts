import { messageOf, type SlotView, type Use, within } from '@svc/core'
import type { Check, CheckReport, HealthFact, HealthWord, Json } from '@svc/core/contracts'

const PROBE_MS = 5_000
/** The checks that the health record always names; one that nobody does is of something that is not there to fail. */
const NAMED = ['database', 'providers', 'cache']

type Ask = (check: Check, use: Use) => Promise<CheckReport>

const probe: Ask = (check, use) => check.probe(use)
/** Asks a check for its figures as well. */
export const withFigures: Ask = (check, use) => (check.status ? check.status(use) : check.probe(use))

/** Asks every check at once; one that fails or does not answer in time is unhealthy. */
export async function probeAll(checks: SlotView<Check>, use: Use, ask = probe): Promise<Map<string, CheckReport>> {
  const others = checks.names().filter(name => !NAMED.includes(name))
  const reports = await Promise.all([...NAMED, ...others].map(name => probeOne(checks.get(name), ask, use)))
  return new Map([...NAMED, ...others].map((name, at) => [name, reports[at]!]))
}

async function probeOne(check: Check | undefined, ask: Ask, use: Use): Promise<CheckReport> {
  if (!check) return { status: 'healthy' }
  try {
    return await within(PROBE_MS, signal => ask(check, { ...use, signal }), use)
  } catch (error) {
    return { status: 'unhealthy', reason: messageOf(error) }
  }
}

const WORDS: readonly HealthWord[] = ['healthy', 'degraded', 'unhealthy']

/** The worst of these words. */
export const worst = (words: Iterable<HealthWord>): HealthWord =>
  WORDS[Math.max(0, ...[...words].map(word => WORDS.indexOf(word)))]!

/** What plugins add to the health record; who does not answer in time adds nothing. */
export async function factsOf(facts: SlotView<HealthFact>, use: Use): Promise<Record<string, Json>> {
  if (facts.size === 0) return {}
  const told = facts
    .entries()
    .map(([, one]) => within(PROBE_MS, signal => one.facts({ ...use, signal }), use).catch(() => undefined))
  return Object.assign({}, ...(await Promise.all(told)))
}
