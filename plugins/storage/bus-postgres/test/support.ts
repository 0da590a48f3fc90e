import { systemContext } from '@svc/core'
import { Postgres, Store } from '@svc/core/contracts'
import { type HostedMember, LOST_MS, openBusMember } from '../../../../test/support/bus-member.ts'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { openBus } from '../src/bus.ts'

export { becomes, LOST_MS, readAll, restOf } from '../../../../test/support/bus-member.ts'

export const ctx = systemContext(new AbortController().signal, 'test')

let schemas = 0
/** A schema that no other test uses. */
export const newSchema = (): string => `bus_${process.pid}_${++schemas}`

interface MemberOptions {
  /** The section `store`. */
  readonly store: object
  readonly cluster?: string
  readonly lostMs?: number
}

export interface TestMember extends HostedMember {
  readonly store: Store
  readonly postgres: Postgres
}

/** A worker with a store in PostgreSQL and the bus. */
export async function openMember(
  at: number | string,
  { store, cluster = 'test', lostMs = LOST_MS }: MemberOptions
): Promise<TestMember> {
  const member = await openBusMember(at, {
    below: { name: '@svc/plugin-store-postgres', use: pluginFolder('store-postgres') },
    config: { store },
    open: (host, own) =>
      openBus({ plugin: 'bus', postgres: host.service(Postgres), store: host.service(Store), cluster, lostMs, ...own }),
  })
  return { ...member, store: member.data.service(Store), postgres: member.data.service(Postgres) }
}
