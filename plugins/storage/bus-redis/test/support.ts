import { systemContext } from '@svc/core'
import { Redis, Store } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { type HostedMember, LOST_MS, openBusMember } from '../../../../test/support/bus-member.ts'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { openBus } from '../src/bus.ts'

export { becomes, LOST_MS, readAll, restOf } from '../../../../test/support/bus-member.ts'

export const ctx = systemContext(new AbortController().signal, 'test')

let clusters = 0
/** A cluster that no other test uses. */
export const newCluster = (): string => `bus${process.pid}-${++clusters}`

interface MemberOptions {
  readonly url: string
  readonly cluster: string
  /** Leases of all members. */
  readonly store: Store
  readonly lostMs?: number
}

export interface TestMember extends HostedMember {
  readonly redis: Redis
  readonly store: Store
}

/** A worker with a connection to Redis and the bus. */
export async function openMember(
  at: number | string,
  { url, cluster, store, lostMs = LOST_MS }: MemberOptions
): Promise<TestMember> {
  const member = await openBusMember(at, {
    below: { name: '@svc/plugin-redis', use: pluginFolder('redis') },
    config: { redis: { url } },
    clusterId: cluster,
    open: (host, own) => openBus({ plugin: 'bus', redis: host.service(Redis), store, lostMs, ...own }),
  })
  return { ...member, store, redis: member.data.service(Redis) }
}

/** A store in memory for the leases of a test. */
export async function openStore(): Promise<{ readonly store: Store } & AsyncDisposable> {
  const host = await testHost([{ name: '@svc/plugin-store-memory', use: pluginFolder('store-memory') }], { strict: false })
  return { store: host.service(Store), [Symbol.asyncDispose]: () => host.close() }
}
