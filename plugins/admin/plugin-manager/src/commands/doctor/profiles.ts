import { nearest, type RunningHost, systemContext } from '@svc/core'
import { type Profile, Providers, Selection } from '@svc/core/contracts'
import { fail, type Finding, warn } from './finding.ts'

const NAME = 'profiles'

/** Profiles that name a provider which is not there, in themselves or as a fallback: a failure where no chat without a name of its own could be answered. */
export async function profileFindings(host: RunningHost, signal: AbortSignal): Promise<Finding[]> {
  if (!host.report().plugins.some(one => one.provides === Selection.name && one.state === 'running')) return []
  const { profiles, active } = await host.service(Selection).profiles(systemContext(signal, 'doctor'))
  const known = host.slot(Providers).names()
  return profiles.flatMap(one => lostIn(one, one.name === active, known))
}

function lostIn({ name, provider, fallback = [] }: Profile, isActive: boolean, known: readonly string[]): Finding[] {
  const isLost = (one: string) => !known.includes(one)
  const spare = fallback.map(one => one.provider)
  const lost = [...new Set(spare.filter(isLost))].map(one => warn(NAME, tells(`fallback of "${name}"`, one), hintOf(one, known)))
  if (provider === undefined || !isLost(provider)) return lost
  const [message, hint] = [tells(`profile "${name}"`, provider), hintOf(provider, known)]
  // a fallback that is there answers in its place
  const isDeaf = isActive && spare.every(isLost)
  return [isDeaf ? fail(NAME, `${message}: no chat is answered`, hint) : warn(NAME, message, hint), ...lost]
}

const tells = (who: string, provider: string) => `${who} names the provider "${provider}", which is not there`

function hintOf(provider: string, known: readonly string[]): string {
  const near = nearest(provider, known)
  const names = near === undefined ? `there are: ${known.join(', ') || 'none'}` : `did you mean "${near}"?`
  return `${names}; fix the name in the profiles, or configure it: providers: { ${provider}: … }`
}
