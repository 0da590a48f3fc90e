import type { Settled } from '../settled.ts'
import type { Link, LinkEvents } from './link.ts'
import { openStdio } from './stdio.ts'

/** Opens what carries the messages. */
export async function openLink(
  { options, limits, clock, servers }: Settled,
  events: LinkEvents,
  signal: AbortSignal
): Promise<Link> {
  if (options.url === undefined) return openStdio(options, limits.resultBytes, events, signal)
  const { openHttp } = await import('./http.ts')
  return openHttp(options, servers(), limits.resultBytes, clock, events)
}
